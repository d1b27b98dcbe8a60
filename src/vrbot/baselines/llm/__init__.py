"""`llm`: any OpenAI-compatible endpoint as a system to compare with; used only when its address is given."""
