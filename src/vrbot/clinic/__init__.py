"""The embedded simulated clinic: a small bilingual medical world, and consultations in it with known truth."""
