"""Shape-relation language: output shapes and dtypes as a function of the inputs, in one line. No torch.

>>> from ascend_graph.shapes import parse_relation
>>> relation = parse_relation("x[..., m, k], w[k, n] -> y[..., m, n]")
>>> relation.infer({"x": (7, 2, 3), "w": (3, 5)}, {"x": "float16", "w": "float16"}, {})
(((7, 2, 5), 'float16'),)
"""

from ascend_graph.shapes.backends.program import OutputSpec, RelationProgram
from ascend_graph.shapes.dtypes import NAMES, DtypeSystem, PromotionOperand
from ascend_graph.shapes.errors import RelationError, ShapeError
from ascend_graph.shapes.parsing.grammar import GRAMMAR
from ascend_graph.shapes.relation import Relation, parse_relation

__all__ = [
    "GRAMMAR",
    "NAMES",
    "DtypeSystem",
    "OutputSpec",
    "PromotionOperand",
    "Relation",
    "RelationError",
    "RelationProgram",
    "ShapeError",
    "parse_relation",
]
