"""Converters: functions made from a binding that add a GE node for an FX node, and the comparison of two of them."""
