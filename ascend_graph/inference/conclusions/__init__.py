"""Conclusions from runs: the relation of one domain, its dtype rules, and what it claims of optional tensors."""
