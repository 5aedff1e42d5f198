"""Attention kernels and their caches."""
