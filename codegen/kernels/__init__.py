"""Kernels in C++: their sources, and the functions that launch them."""
