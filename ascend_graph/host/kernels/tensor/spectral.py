"""Fourier transforms."""

from __future__ import annotations

import torch

from ascend_graph.host.kernels.registry import plain_kernels

plain_kernels(["x"], {"FFT": torch.fft.fft, "FFT2D": torch.fft.fft2})
