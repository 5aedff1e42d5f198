"""Declared batch and reduced dimensions: checks by running, vmap, and sharding rules of DTensor."""
