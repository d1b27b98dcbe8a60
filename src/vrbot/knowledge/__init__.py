"""What is known: the graph, its names and aliases, linking and retrieval; no networks."""
