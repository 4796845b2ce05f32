"""The plugin in a real vLLM, in an environment of its own (``make setup-vllm``): marked ``accept``."""
