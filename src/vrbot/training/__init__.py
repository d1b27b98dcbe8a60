"""Training that can be relied on: exact resume, sealed checkpoints, several processes, logs."""
