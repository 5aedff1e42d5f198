"""Operator checks: results of a kernel against what was promised of it."""
