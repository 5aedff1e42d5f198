"""Operators with one relation share its program, and their messages name each of them."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from ascend_graph.dispatch.meta import meta_function
from ascend_graph.shapes import ShapeError, parse_relation


def test_operators_with_one_relation_share_its_program_and_name_themselves() -> None:
    relation = parse_relation("x[n], y[n] -> z[n] where n % 2 == 0")
    schemas = [torch._C.parse_schema(f"shared::{name}(Tensor x, Tensor y) -> Tensor") for name in ("first", "second")]
    metas = [meta_function(relation, schema) for schema in schemas]
    assert len(relation._programs) == 1
    mode = FakeTensorMode(shape_env=ShapeEnv())
    x = mode.from_tensor(torch.empty(3))
    for name, meta in zip(("first", "second"), metas, strict=True):
        with pytest.raises(ShapeError, match=f"^shared::{name}: "):
            meta(torch.empty(3), torch.empty(3))
        with mode, pytest.raises(RuntimeError, match=f"shared::{name}: "):
            meta(x, x)
