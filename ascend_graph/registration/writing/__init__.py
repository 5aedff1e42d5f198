"""Operators that write to their arguments: functional variants, GE nodes and graph passes."""
