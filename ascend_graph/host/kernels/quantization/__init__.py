"""Quantization, its inverse, and layers that quantize."""
