"""Operators that have no schema but the one made from their prototype: every prototype of the wheel."""

from __future__ import annotations

import importlib
import inspect
import re
import warnings
from itertools import count
from typing import Any

import pytest
import torch

from ascend_graph.binding.bound import Conversion
from ascend_graph.binding.dtypes import PACKED_DTYPES
from ascend_graph.binding.errors import EagerError
from ascend_graph.dispatch.torchair import torchair
from ascend_graph.eager import operator_schema
from ascend_graph.prototypes import OpPrototype, ParameterKind, parse_text
from ascend_graph.registration import BindingError, bind, make_converter, read_schema

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what torch itself deprecates, in modules that torchair imports
    import torch_npu  # noqa: F401 - torchair can only be imported after it

    compat = importlib.import_module("torchair._ge_concrete_graph.compat_ir")
    raw_ops = importlib.import_module("torchair._ge_concrete_graph.auto_generated_ge_raw_ops")


def wheel_prototypes() -> list[OpPrototype]:
    """The prototypes in the docstrings of the wheel's raw ops, which have all of them but the end."""
    texts = []
    for function in vars(raw_ops).values():
        doc = inspect.isfunction(function) and inspect.unwrap(function).__doc__
        match = re.search(r"REG_OP\((\w+)\)", doc) if doc else None
        if doc and match:
            texts.append(f"{doc[match.start() :]}\n.OP_END_FACTORY_REG({match[1]})")
    return [prototype for text in texts for prototype in parse_text(text).prototypes]


def values(schema: Any, prototype: OpPrototype, names: dict[str, str]) -> tuple[list[Any], dict[str, Any]]:
    """A call with what has no default; empty where the machine's torch has none of an input's dtypes."""
    ge, index = torchair().ge, count()
    plain = {
        "int": 1,
        "float": 0.5,
        "bool": True,
        "str": "a",
        "List[int]": [1],
        "List[float]": [0.5],
        "List[bool]": [True],
    }
    inputs = {parameter.name: parameter for parameter in prototype.inputs}
    args, kwargs = [], {}
    for argument in schema.arguments:
        if argument.has_default_value():
            continue
        kind = str(argument.type)
        if "Tensor" in kind:
            allowed = [*map(int, inputs[names[argument.name]].dtypes)] or [0]
            dtype = ge.ge_type_to_torch_type(allowed[0])
            if ge.torch_type_to_ge_type(dtype) not in allowed:
                raise ValueError(f"torch stores {allowed[0]} as {dtype}")
            data = ge.Data(index=next(index), dtype=allowed[0], shape=[2, 2], placement="NPU")
            data.set_meta(torch.empty(2, 2, dtype=dtype, device="meta"))
            value: Any = [data] if "List" in kind else data
        else:
            known = [d for p in (*prototype.inputs, *prototype.outputs) for d in p.dtypes]
            value = plain.get(kind, int(known[0]) if known and argument.kwarg_only else [1])
        if argument.kwarg_only:
            kwargs[argument.name] = value
        else:
            args.append(value)
    return args, kwargs


@pytest.mark.filterwarnings("ignore:torch.quantize")  # some prototypes want quantized dtypes first
def test_every_prototype_of_the_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compat, "is_cann_compat", lambda *_, **__: "")
    refused, bound, converted = set(), 0, 0
    for prototype in wheel_prototypes():
        try:
            own = operator_schema(prototype)
            schema = torch._C.parse_schema(f"ascend::{own}")
        except EagerError:
            refused.add(prototype.op_type)
            continue
        binding = bind(read_schema(schema), prototype, own=own)
        bound += 1
        assert not binding.unused
        assert not binding.dropped
        outputs = prototype.outputs
        if any(o.kind is ParameterKind.DYNAMIC or (o.dtypes and {*o.dtypes} <= {*PACKED_DTYPES}) for o in outputs):
            continue  # their number, or the rank of what is packed, comes from the meta outputs
        with torchair().ge.GeGraph() as graph:
            try:
                args, kwargs = values(schema, prototype, binding.argument_names())
            except (RuntimeError, ValueError):
                continue  # strings and resources, which TorchAir has no tensors of
            if any(s is not None and s.conversion is Conversion.DTYPE for s in binding.attrs) and kwargs:
                continue  # a required dtype: torch's number, which the tests of arguments cover
            make_converter(binding)(*args, **kwargs)
            node = next(node for node in graph.op if node.type == prototype.op_type)
            wired = [desc.name for desc in node.input_desc if desc.attr.get("_is_unfed_optional") is None]
            required = [p.name for p in prototype.inputs if p.kind is ParameterKind.REQUIRED]
            assert [name for name in wired if name in required] == required
            assert {a.name for a in prototype.attrs if a.required} <= {*node.attr}
            converted += 1
    assert len(refused) <= 35  # attrs that are lists of lists, tensors or functions
    assert bound > 1600
    assert converted > 1300


def test_names_that_schemas_keep_for_themselves() -> None:
    text = """REG_OP(Assert).INPUT(else, TensorType({DT_FLOAT})).INPUT(x, TensorType({DT_FLOAT}))
        .OUTPUT(in, TensorType({DT_FLOAT})).ATTR(is, Int, 1).ATTR(lambda, Float, 1.0).OP_END_FACTORY_REG(Assert)"""
    prototype = parse_text(text).prototypes[0]
    assert (
        str(operator_schema(prototype))
        == "assert_op(Tensor else_, Tensor x, *, int is_=1, float lambda_=1.0) -> Tensor in_"
    )
    schema = torch._C.parse_schema(f"ascend::{operator_schema(prototype)}")
    binding = bind(read_schema(schema), prototype, own=operator_schema(prototype))
    assert binding.argument_names() == {"else_": "else", "x": "x", "is_": "is", "lambda_": "lambda"}


def test_an_attr_with_the_name_of_inputs_gets_one_of_its_own() -> None:
    text = """REG_OP(Named).INPUT(x, TensorType({DT_FLOAT})).INPUT(x_, TensorType({DT_FLOAT}))
        .OUTPUT(y, TensorType({DT_FLOAT})).ATTR(x, Int, 1).OP_END_FACTORY_REG(Named)"""
    prototype = parse_text(text).prototypes[0]
    assert str(operator_schema(prototype)) == "named(Tensor x, Tensor x_, *, int x__=1) -> Tensor y"


def test_numbers_of_dtypes_are_ges_own() -> None:
    text = """REG_OP(SizeOf).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_INT32, DT_INT64}))
        .ATTR(dtype, Int, DT_INT32).OP_END_FACTORY_REG(SizeOf)"""
    prototype = parse_text(text).prototypes[0]
    schema = read_schema(torch._C.parse_schema(f"ascend::{operator_schema(prototype)}"))
    with pytest.raises(BindingError, match="torch's number of a dtype or GE's own"):
        bind(schema, prototype)
    (dtype,) = bind(schema, prototype, own=operator_schema(prototype)).attrs
    assert dtype is not None
    assert dtype.conversion is Conversion.DIRECT
