"""Checks of opcheck, grouped by what they compare an operator with."""
