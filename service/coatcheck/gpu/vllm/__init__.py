"""The vLLM plugin: what vLLM's own places take of the accelerated runtime, by what the installed vLLM has."""
