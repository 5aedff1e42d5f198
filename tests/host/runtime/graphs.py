"""GE graphs made by hand."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torchair._ge_concrete_graph.ge_ir_pb2 import DataType, GraphDef, ModelDef, OpDef

from ascend_graph.host.runtime.engine import CompiledGraph, compile_model

FLOAT, INT64, INT32 = DataType.DT_FLOAT, DataType.DT_INT64, DataType.DT_INT32
Edge = str | tuple[str, str]


class Graph:
    """A GE graph in the making."""

    def __init__(self) -> None:
        self.model = ModelDef()
        self.graph: GraphDef = self.model.graph.add()
        self.inputs = 0

    def data(self, name: str, shape: Sequence[int], dtype: int = FLOAT) -> str:
        op = self.graph.op.add(name=name, type="Data")
        op.attr["index"].i = self.inputs
        self.inputs += 1
        op.output_desc.add(name="y", dtype=dtype).shape.dim.extend(shape)
        return f"{name}:0"

    def const(self, name: str, value: torch.Tensor) -> str:
        op = self.graph.op.add(name=name, type="Const")
        tensor = op.attr["value"].t
        tensor.desc.dtype = {torch.float32: FLOAT, torch.int64: INT64, torch.int32: INT32}[value.dtype]
        tensor.desc.shape.dim.extend(value.shape)
        tensor.data = value.numpy().tobytes()
        op.output_desc.add(name="y", dtype=tensor.desc.dtype)
        return f"{name}:0"

    def placeholder(self, name: str, shape: Sequence[int], address: int, size: int) -> str:
        op = self.node(name, "ConstPlaceHolder", [])
        op.attr["origin_shape"].list.i.extend(shape)
        op.attr["dtype"].dt = 0
        op.attr["addr"].i = address
        op.attr["size"].i = size
        return f"{name}:0"

    def frozen(self, name: str, value: torch.Tensor) -> str:
        """A frozen parameter of float32."""
        return self.placeholder(name, value.shape, value.data_ptr(), value.nbytes)

    def node(self, name: str, kind: str, inputs: Sequence[tuple[str, str]], outputs: int = 1, **attrs: object) -> OpDef:
        op = self.graph.op.add(name=name, type=kind)
        for key, value in attrs.items():
            field = {bool: "b", int: "i", float: "f", str: "s"}[type(value)]
            setattr(op.attr[key], field, value.encode() if isinstance(value, str) else value)
        for key, edge in inputs:
            op.input.append(edge)
            if not edge.endswith(":-1"):
                op.input_desc.add(name=key)
        for i in range(outputs):
            op.output_desc.add(name=f"y{i}")
        return op

    def add(self, name: str, kind: str, inputs: Sequence[tuple[str, str]], **attrs: object) -> str:
        self.node(name, kind, inputs, **attrs)
        return f"{name}:0"

    def output(self, *edges: str, dtype: int = FLOAT) -> None:
        op = self.node("NetOutput", "NetOutput", [(f"input{i}", edge) for i, edge in enumerate(edges)], 0)
        for description in op.input_desc:
            description.dtype = dtype

    def compile(self) -> CompiledGraph:
        return compile_model(self.model.SerializeToString(), {})
