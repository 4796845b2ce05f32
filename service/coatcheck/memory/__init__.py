"""The use cases: the only layer that knows both PostgreSQL and the index."""
