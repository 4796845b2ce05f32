"""What all kernels share: compiling them ahead of time for GPUs that are not there."""
