"""REG_OP text → immutable prototypes, and the catalog of those a process knows. Pure Python: no torch, no compiler."""

from ascend_graph.prototypes.dtypes import DataType
from ascend_graph.prototypes.model import Attr, AttrType, OpPrototype, Parameter, ParameterKind

__all__ = ["Attr", "AttrType", "DataType", "OpPrototype", "Parameter", "ParameterKind"]
