"""Lowering of relations: statements and expressions become the nodes that every back end reads."""

from ascend_graph.shapes.lowering.statements import lower

__all__ = ["lower"]
