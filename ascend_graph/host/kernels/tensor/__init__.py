"""Kernels that move, index, create and reduce tensors."""
