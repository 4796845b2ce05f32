"""What all kernels share: who computes, and compiling them ahead of time for GPUs that are not there."""
