"""Outputs of operators, as the written module states them: shape relations, and meta functions in Python."""
