"""The console, driven through a real browser."""
