"""Per-layer embeddings: getting a table out of a checkpoint whole, checked before a byte is copied."""
