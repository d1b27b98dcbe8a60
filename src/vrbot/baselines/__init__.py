"""Every system by name: VRBot, its ablations, and the systems it is compared with."""
