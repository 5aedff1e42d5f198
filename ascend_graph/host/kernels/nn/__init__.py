"""Kernels of layers: activations, norms, convolutions, losses, recurrent cells."""
