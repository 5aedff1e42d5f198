"""Nodes compared: converters made from a binding against the wheel's hand-written ones, for dtypes that torch has
not."""

from __future__ import annotations

import importlib
import inspect
import warnings
from typing import Any

import pytest
import torch

from ascend_graph import dtype_number
from ascend_graph.dispatch.torchair import existing_converter, torchair
from ascend_graph.prototypes import OpPrototype, parse_text
from ascend_graph.registration import ConversionError, bind, make_converter, read_schema
from ascend_graph.registration.conversion.comparison import Nodes, RefusedError, build_nodes

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what torch itself deprecates, in modules that torchair imports
    import torch_npu

    compat = importlib.import_module("torchair._ge_concrete_graph.compat_ir")
    raw_ops = importlib.import_module("torchair._ge_concrete_graph.auto_generated_ge_raw_ops")

FLOAT4_E2M1, FLOAT4_E1M2, FLOAT8_E4M3FN, QUINT4X2 = 296, 297, 292, 16


@pytest.fixture(autouse=True)
def any_cann(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CANN that has every op: here is none that could be asked."""
    monkeypatch.setattr(compat, "is_cann_compat", lambda *_, **__: "")


def prototype_of(op_type: str) -> OpPrototype:
    """The prototype in the docstring of the wheel's raw op, which has all of it but the end."""
    text = inspect.unwrap(getattr(raw_ops, op_type)).__doc__
    return parse_text(f"{text[text.index('REG_OP') :]}\n.OP_END_FACTORY_REG({op_type})").prototypes[0]


def both(
    op_type: str, overload: Any, tensors: list[torch.Tensor], arguments: dict[str, Any] | None = None, **attrs: Any
) -> tuple[Nodes, Nodes]:
    """The nodes of the hand-written converter and of ours, for a call on meta tensors."""
    prototype = prototype_of(op_type)
    ours = make_converter(bind(read_schema(overload._schema), prototype, arguments))
    metas = overload(*tensors, **attrs)
    fx, ge = torchair().fx, torchair().ge
    wrapped = fx._wrap_converter(ours)
    wrapped.require_meta = True
    with ge.GeGraph():
        inputs = []
        for n, tensor in enumerate(tensors):
            dtype = ge.torch_type_to_ge_type(tensor.dtype)
            data = ge.Data(index=n, dtype=dtype, shape=list(tensor.shape), placement="NPU")
            data.set_meta(tensor)
            inputs.append(data)

    def known(name: str) -> OpPrototype | None:
        return prototype if name == op_type else None

    theirs = build_nodes(existing_converter(overload), inputs, attrs, metas, prototype_of=known)
    return theirs, build_nodes(wrapped, inputs, attrs, metas, prototype_of=known)


@pytest.mark.parametrize("dst_type", [FLOAT4_E2M1, FLOAT4_E1M2, FLOAT8_E4M3FN])
@pytest.mark.parametrize("op", ["DynamicBlockMxQuant", "DynamicMxQuantWithDualAxis"])
def test_four_bits_in_a_byte_and_scales_that_torch_has_not(op: str, dst_type: int) -> None:
    overload = {
        "DynamicBlockMxQuant": torch.ops.npu.npu_dynamic_block_mx_quant.default,
        "DynamicMxQuantWithDualAxis": torch.ops.npu.npu_dynamic_mx_quant_with_dual_axis.default,
    }[op]
    x = torch.empty(64, 128, dtype=torch.float16, device="meta")
    theirs, ours = both(op, overload, [x], dst_type=dst_type)
    assert theirs.returns is not None
    assert theirs.difference(ours) == []
    assert ("Bitcast" in str(ours.returns)) == (dst_type != FLOAT8_E4M3FN)


@pytest.mark.skipif(
    not hasattr(torch.ops.npu, "npu_rotate_quant"), reason=f"torch_npu {torch_npu.__version__} has no npu_rotate_quant"
)
def test_eight_fours_in_an_int32() -> None:
    x = torch.empty(16, 128, dtype=torch.float16, device="meta")
    rotation = torch.empty(128, 128, dtype=torch.float16, device="meta")
    overload, arguments = torch.ops.npu.npu_rotate_quant.default, {"dst_dtype": ("y_dtype", dtype_number)}
    theirs, ours = both("RotateQuant", overload, [x, rotation], arguments, dst_dtype=QUINT4X2)
    assert theirs.difference(ours) == []
    assert "Bitcast" in str(ours.returns)


@pytest.mark.skipif(not hasattr(torch, "float4_e2m1fn_x2"), reason=f"torch {torch.__version__} has no float4_e2m1fn_x2")
def test_four_bits_that_an_input_could_have_too_are_refused() -> None:
    text = """REG_OP(FourBits).INPUT(x, TensorType({DT_FLOAT16, DT_FLOAT4_E2M1}))
        .OUTPUT(y, TensorType({DT_FLOAT16, DT_FLOAT4_E2M1})).REQUIRED_ATTR(dst_type, Int)
        .OP_END_FACTORY_REG(FourBits)"""
    schema = torch._C.parse_schema("four::bits(Tensor x, ScalarType dst_type) -> Tensor")
    convert = make_converter(bind(read_schema(schema), parse_text(text).prototypes[0]))
    ge = torchair().ge
    with ge.GeGraph():
        x = ge.Data(index=0, dtype=1, shape=[2], placement="NPU")
        with pytest.raises(
            ConversionError, match=r"DT_FLOAT4_E2M1; GE counts single elements.*an input can have it too"
        ):
            convert(x, torch.float4_e2m1fn_x2)


def test_differences_are_found() -> None:
    ge, raw = torchair().ge, torchair().raw
    with ge.GeGraph():
        x = ge.Data(index=0, dtype=0, shape=[2], placement="NPU")

    def built(converter: Any) -> Nodes:
        return build_nodes(converter, [x], {}, None)

    cast = built(lambda x: raw.Cast(x, dst_type=1))
    assert cast.difference(built(lambda x: raw.Cast(x, dst_type=1))) == []
    assert "dst_type" in "".join(cast.difference(built(lambda x: raw.Cast(x, dst_type=9))))
    assert cast.difference(built(raw.TensorMove)) != []
    with pytest.raises(RefusedError, match="ZeroDivisionError"):
        built(lambda x: 1 // 0)
