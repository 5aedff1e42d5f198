"""Operators that Python sources define, register metas of, or convert."""
