"""An Int attr that is a dtype: the kernel, GE and the meta function agree on it, whatever number the caller gives."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from eager_package import PROTOTYPES, prototype

import ascend_graph
from ascend_graph import AscendGraphError, dtype_number
from ascend_graph.binding.dtype_ints import Numbers, dtype_ints
from ascend_graph.eager import EagerError, define_operator, operator_schema
from ascend_graph.prototypes import DataType, parse_text
from ascend_graph.registration import BindingError, RegistrationError
from ascend_graph.shapes import parse_relation

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what torch itself deprecates, in modules that torchair imports
    import torch_npu  # noqa: F401 - torchair can only be imported after it
    import torchair.npu_fx_compiler

pytestmark = pytest.mark.filterwarnings("default")

RELATION = "x[*s] -> y[*s]: dst_type"
GES_OWN = {"dst_type": ("dst_type", int)}
Recorded = Callable[[], dict[str, Any]]


@pytest.fixture(autouse=True)
def loaded() -> Iterator[None]:
    ascend_graph.load_prototypes(PROTOTYPES)
    yield
    for registered in ascend_graph.registered_ops():
        if registered.op_type == "CastTo" and registered.overload.namespace != "generated_ops":
            registered.unregister()
    torch._dynamo.reset()


def agreed(op: Any, given: Any, recorded: Recorded) -> tuple[torch.dtype, int]:
    """The dtype of the result and the number that aclnn and GE get, which are the same everywhere."""

    def call(x: torch.Tensor) -> Any:
        return op(x) if given is None else op(x, dst_type=given)

    meta = call(torch.empty(3, device="meta")).dtype
    found = []
    for mode in (lambda f: f, lambda f: torch.compile(f, backend=torchair.get_npu_backend(), dynamic=False)):
        result = mode(call)(torch.ones(3).npu())
        assert result.dtype == meta
        torch.npu.synchronize()
        found.append(recorded())
    assert found[0] == found[1]
    assert found[0]["dst_type"] == found[0]["y"], "the output has the dtype that the attr says"
    return meta, found[0]["dst_type"]


@pytest.mark.parametrize(
    ("given", "dtype", "number"),
    [
        (None, torch.int8, 2),
        (torch.float16, torch.float16, DataType.FLOAT16),
        (5, torch.float16, DataType.FLOAT16),
        (1, torch.int8, DataType.INT8),
        (torch.bfloat16, torch.bfloat16, DataType.BF16),
        (torch.int32, torch.int32, DataType.INT32),
    ],
)
def test_torchs_numbers(given: Any, dtype: torch.dtype, number: int, recorded: Recorded) -> None:
    """The relation takes the attr for a dtype: callers give torch's, and the default is torch's number of GE's
    default."""
    op = ascend_graph.register_op("CastTo", shape=RELATION)
    assert str(op.overload._schema) == "ascend::cast_to(Tensor x, *, int dst_type=1) -> Tensor y"
    assert agreed(op, given, recorded) == (dtype, number)


@pytest.mark.parametrize(
    ("given", "dtype", "number"), [(None, torch.int8, 2), (1, torch.float16, 1), (27, torch.bfloat16, 27)]
)
def test_ges_numbers(given: Any, dtype: torch.dtype, number: int, recorded: Recorded) -> None:
    op = ascend_graph.register_op("CastTo", shape=RELATION, arguments=GES_OWN)
    assert str(op.overload._schema) == "ascend::cast_to(Tensor x, *, int dst_type=2) -> Tensor y"
    assert agreed(op, given, recorded) == (dtype, number)


@pytest.mark.parametrize(
    ("given", "dtype", "number"), [(None, torch.int8, 2), (torch.float16, torch.float16, 1), (5, torch.float16, 1)]
)
def test_a_generated_project(library: Any, given: Any, dtype: torch.dtype, number: int, recorded: Recorded) -> None:
    """What the generator wrote of the attr is what its own import, the kernel and GE follow."""
    assert agreed(library.cast_to, given, recorded) == (dtype, number)


@pytest.mark.parametrize(("hook", "given"), [(dtype_number, 5), (int, 1)])
def test_an_operator_of_others(hook: Any, given: int) -> None:
    """The meta function reads the number that the binding says."""
    library = torch.library.Library("dtype_ints", "DEF")
    try:
        library.define("cast_to(Tensor x, int kind) -> Tensor")
        overload = torch.ops.dtype_ints.cast_to.default
        relation = "x[*s] -> y[*s]: kind"
        with pytest.raises(BindingError, match="is it torch's number of a dtype or GE's own"):
            ascend_graph.register_op("CastTo", eager=overload, shape=relation, arguments={"kind": "dst_type"})
        op = ascend_graph.register_op("CastTo", eager=overload, shape=relation, arguments={"kind": ("dst_type", hook)})
        assert overload(torch.empty(2, device="meta"), given).dtype == torch.float16
        op.unregister()
    finally:
        library._destroy()


@pytest.mark.parametrize("value", [("dst_type", {1: 2}), ("dst_type", lambda v: v), 3, None])
def test_what_the_kernel_would_not_do_is_refused(value: Any) -> None:
    with pytest.raises(RegistrationError, match="without eager= the operator is made from the prototype"):
        ascend_graph.register_op("CastTo", shape=RELATION, arguments={"dst_type": value})


def test_a_default_that_is_no_dtype() -> None:
    text = "REG_OP(D).INPUT(x, ALL()).OUTPUT(y, ALL()).ATTR(d, Int, -1).ATTR(f, Float, 1.0).OP_END_FACTORY_REG(D)"
    op = parse_text(text).prototypes[0]
    with pytest.raises(EagerError, match=r"its default -1 is not a dtype of GE.*arguments=\{'d': \('d', int\)\}"):
        define_operator(op, "x[*s] -> y[*s]: d", namespace="dtype_ints")
    with pytest.raises(AscendGraphError, match="f takes is said, but it is not an Int attr; expected one of: d"):
        define_operator(op, "x[*s] -> y[*s]", namespace="dtype_ints", numbers={"f": Numbers.GE})
    assert dtype_ints(op, parse_relation("x[*s] -> y[*s]: x")) == {}


@pytest.mark.parametrize("dtype", [d for d in DataType if d.name in ("FLOAT", "INT64", "BF16", "HIFLOAT8", "UINT64")])
def test_defaults_are_translated(dtype: DataType) -> None:
    text = f"REG_OP(D).INPUT(x, ALL()).OUTPUT(y, ALL()).ATTR(d, Int, {int(dtype)}).OP_END_FACTORY_REG(D)"
    op = parse_text(text).prototypes[0]
    default = torch._C.parse_schema(f"a::{operator_schema(op, None, {'d': Numbers.TORCH})}").arguments[1].default_value
    assert dtype_number(default) == dtype


def test_the_prototype_of_the_package_says_nothing_of_torch() -> None:
    """Without a relation that takes it for a dtype the attr is a number, GE's as the header has it."""
    assert str(operator_schema(prototype("CastTo"))) == "cast_to(Tensor x, *, int dst_type=2) -> Tensor y"
