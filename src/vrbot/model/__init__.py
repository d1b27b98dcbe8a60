"""The paper, section 3: context encoder, state tracker, policy network, response generator, and VRBot itself."""
