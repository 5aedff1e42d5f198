"""Checking operators: what a kernel returns against what was promised of it."""
