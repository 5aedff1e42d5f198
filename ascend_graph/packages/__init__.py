"""Operator packages as a whole: where they are, what they hold, and their registration on first use.

``locate`` and ``contents`` need no torch, ``register`` imports it, and ``autoload`` is what ``import torch`` calls.
"""
