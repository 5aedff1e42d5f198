"""Triton-Ascend kernels on the host: the wheel compiles them to Triton's IR, which runs here on device memory."""
