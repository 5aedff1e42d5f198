"""Collectives, and matrix multiplications fused with them."""
