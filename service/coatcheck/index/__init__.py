"""The index: passages as points of Qdrant, embedded or on a server, and the lexical analysis that both share."""

__all__: list[str] = []
