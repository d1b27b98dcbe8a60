"""What training maximises: the evidence lower bounds of section 3.6, and the terms for labels."""
