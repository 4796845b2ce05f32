"""Who is asking: root key, derived keys, credentials, and the request context that carries a verified caller's rights."""
