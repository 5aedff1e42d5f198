"""Calls that checks make: samples, attr values, constants."""
