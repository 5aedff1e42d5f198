"""Fuzzer: random programs and random operators through every mode of the stack, against plain PyTorch on the CPU."""
