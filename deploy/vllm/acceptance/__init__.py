"""The acceptance run of a model server: overlapping requests, memory and restarts watched, any OpenAI-compatible endpoint."""
