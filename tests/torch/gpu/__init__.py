"""The accelerated runtime: its kernels run in a mended interpreter where there is no GPU."""
