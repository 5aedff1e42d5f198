"""Every kind of argument arrives at the aclnn function with its value intact."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable
from typing import Any

import pytest
import torch
from eager_package import SHAPES, prototype
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ascend_graph.eager import EagerOperator, define_operator
from ascend_graph.prototypes import AttrType, DataType, ParameterKind

RELATION = SHAPES["Recorder"]
DTYPES = {
    torch.float32: 0,
    torch.float16: 1,
    torch.int8: 2,
    torch.int32: 3,
    torch.int64: 9,
    torch.bool: 12,
    torch.bfloat16: 27,
}
RECORDER = prototype("Recorder")


def _bits(value: float, *, single: bool = False) -> int:
    if not single:
        return int(struct.unpack("<Q", struct.pack("<d", value))[0])
    return int(torch.tensor(value, dtype=torch.float64).to(torch.float32).view(torch.int32).item()) & 0xFFFFFFFF


def _tensor(tensor: torch.Tensor | None) -> Any:
    if tensor is None:
        return None
    # data_ptr() is 0 for a tensor without elements.
    data = tensor.untyped_storage().data_ptr() + tensor.storage_offset() * tensor.itemsize
    return [DTYPES[tensor.dtype], data, list(tensor.shape), list(tensor.stride())]


@st.composite
def tensors(draw: st.DrawFn) -> torch.Tensor:
    """A tensor on the device: of any dtype, rank 0 to 3, some not contiguous, some with an offset."""
    dtype = draw(st.sampled_from(list(DTYPES)))
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    base = torch.zeros([size + 1 for size in shape], dtype=dtype, device="npu")
    view = base[tuple(slice(draw(st.integers(0, 1)), None) for _ in shape)]
    return view.permute(draw(st.permutations(range(len(shape))))) if shape else view


_INT = st.integers(-(2**63), 2**63 - 1)
_FLOAT = st.floats(-3.4e38, 3.4e38) | st.sampled_from([math.nan, math.inf, -math.inf])
_TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
_VALUES = {
    AttrType.INT: _INT,
    AttrType.FLOAT: _FLOAT,
    AttrType.BOOL: st.booleans(),
    AttrType.STRING: _TEXT,
    AttrType.TYPE: st.sampled_from([*DTYPES, 256 + int(DataType.INT4), 256 + int(DataType.HIFLOAT8)]),
    AttrType.LIST_INT: st.lists(_INT, max_size=5),
    AttrType.LIST_FLOAT: st.lists(_FLOAT, max_size=5),
    AttrType.LIST_BOOL: st.lists(st.booleans(), max_size=5),
    AttrType.LIST_TYPE: st.lists(st.sampled_from([0, 5, 15, 256 + int(DataType.INT4)]), max_size=5),
}


@st.composite
def calls(draw: st.DrawFn) -> tuple[list[Any], dict[str, Any]]:
    """Arguments of the recorder: inputs in order, attrs by name, some left to their defaults."""
    inputs: list[Any] = []
    for parameter in RECORDER.inputs:
        if parameter.kind is ParameterKind.DYNAMIC:
            inputs.append(draw(st.lists(tensors(), min_size=1, max_size=3)))
        elif parameter.kind is ParameterKind.OPTIONAL:
            inputs.append(draw(st.none() | tensors()))
        else:
            inputs.append(draw(tensors()))
    attrs = {a.name: draw(_VALUES[a.type]) for a in RECORDER.attrs if a.required or draw(st.booleans())}
    return inputs, attrs


def _expected(attr_type: AttrType, value: Any) -> Any:
    match attr_type:
        case AttrType.FLOAT:
            return _bits(ctypes.c_float(value).value)  # the function takes 64 bits, its kernel 32
        case AttrType.STRING:
            return list(value.encode())
        case AttrType.TYPE:
            return DTYPES[value] if isinstance(value, torch.dtype) else _acl_dtype(value)
        case AttrType.LIST_TYPE:
            return [_acl_dtype(v) for v in value]
        case AttrType.LIST_FLOAT:
            return [_bits(v, single=True) for v in value]
        case AttrType.LIST_INT | AttrType.LIST_BOOL:
            return list(value)
    return value


def _acl_dtype(number: int) -> int:
    """GE's number of a dtype that is given by torch's number, torch_npu's, or as GE's own."""
    if isinstance(number, DataType):
        return int(number)
    return number - 256 if number >= 256 else {0: DataType.UINT8, 5: DataType.FLOAT16, 15: DataType.BF16}[number]


def _default(name: str) -> Any:
    return next(a for a in RECORDER.attrs if a.name == name).default


@pytest.fixture(scope="module")
def recorder() -> Any:
    operator = define_operator(RECORDER, RELATION, namespace="eager_tests")
    yield operator
    operator.remove()


def test_the_recorder_has_every_kind_of_parameter() -> None:
    assert len(RECORDER.inputs) + len(RECORDER.attrs) + len(RECORDER.outputs) >= 40
    assert {a.type for a in RECORDER.attrs} == _VALUES.keys()
    assert {p.kind for p in RECORDER.inputs} == set(ParameterKind)


def check_recorded(
    recorded: Callable[[], dict[str, Any]], call: tuple[list[Any], dict[str, Any]], outputs: Any
) -> None:
    """The recorder received what the call gave it, and its outputs have the relation's shapes."""
    inputs, attrs = call
    got = recorded()
    for parameter, value in zip(RECORDER.inputs, inputs, strict=True):
        assert got[parameter.name] == ([_tensor(t) for t in value] if isinstance(value, list) else _tensor(value)), (
            parameter
        )
    for attr in RECORDER.attrs:
        value = attrs.get(attr.name, _default(attr.name))
        assert got[attr.name] == _expected(attr.type, value), attr
    y0, y1, ys = outputs
    assert (got["y0"], got["y1"], got["ys"]) == (_tensor(y0), _tensor(y1), [_tensor(y) for y in ys])
    assert y0.shape == y1.shape == inputs[0].shape
    assert y0.dtype == inputs[0].dtype
    assert y1.dtype == torch.int64
    assert [y.shape for y in ys] == [(n + 1,) for n in range(2 if attrs.get("b1", True) else 3)]


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(call=calls())
def test_all_arguments_arrive(recorder: EagerOperator, recorded: Callable[[], dict[str, Any]], call: Any) -> None:
    inputs, attrs = call
    check_recorded(recorded, call, recorder.overload(*inputs, **attrs))


def test_nothing_is_left_of_a_string_that_c_would_cut(recorder: EagerOperator) -> None:
    x = torch.zeros(1, device="npu")
    required = {a.name: [] if a.type is not AttrType.FLOAT else 0.0 for a in RECORDER.attrs if a.required}
    with pytest.raises(RuntimeError, match="null character"):
        recorder.overload(x, x, x, x, x, None, None, None, [x], [x], s0="a\0b", **required)


def test_views_and_channels_last_keep_their_layout(define: Callable[..., EagerOperator]) -> None:
    add = define("AddCustom", "x[*s], y[*s] -> z like x").overload
    x = torch.randn(2, 3, 4, 5)
    last = x.npu().permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    assert last.is_contiguous(memory_format=torch.channels_last)
    z = add(last, x.npu())
    assert z.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(z.cpu(), x + x)
    expanded = torch.randn(1, 4).npu().expand(3, 4)
    torch.testing.assert_close(add(expanded, expanded).cpu(), 2 * expanded.cpu())


def test_an_absent_output(define: Callable[..., EagerOperator]) -> None:
    maybe = define("Maybe", "x[*s] -> y[*s], z[*s] if with_z else None").overload
    x = torch.zeros(2).npu()
    y, z = maybe(x)
    assert (y.cpu().tolist(), z.cpu().tolist()) == ([1, 1], [2, 2])
    y, z = maybe(x, with_z=False)
    assert z is None
    assert y.cpu().tolist() == [1, 1]


def test_an_operator_written_in_place(define: Callable[..., EagerOperator]) -> None:
    operator = define("Increment", "x[*s] -> x")
    x = torch.zeros(3, 4, device="npu")
    view = x[:, ::2]
    assert str(operator.overload._schema) == "eager_tests::increment(Tensor(a!) x) -> ()"
    assert operator.overload(view) is None
    assert x.cpu().tolist() == [[1, 0, 1, 0]] * 3

    def step(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        operator.overload(y)
        return y * 2

    torch.testing.assert_close(torch.compile(step, backend="aot_eager", fullgraph=True)(x).cpu(), step(x).cpu())
