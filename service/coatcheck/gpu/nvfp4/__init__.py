"""The packed KV cache in NVFP4: its layout, its codec, its kernels, who owns its slots, and how many pages it needs."""
