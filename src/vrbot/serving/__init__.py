"""The physician's desk: what is stored, who may do what, and what may reach a patient."""
