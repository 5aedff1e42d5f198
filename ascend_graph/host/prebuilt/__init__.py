"""Operator packages that CANN built: their kernels are compiled from their own sources, their tiling functions are called."""
