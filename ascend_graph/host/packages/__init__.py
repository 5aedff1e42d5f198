"""Operator packages: building them from kernels and loading them."""
