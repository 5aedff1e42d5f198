"""An output that the relation makes None is absent: in eager calls, graphs, captures, gradients and kernels alike."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import ascend_graph
from ascend_graph.dispatch.torchair import torchair as torchair_pieces
from ascend_graph.host import build_operator_package
from ascend_graph.host.bridge import bridge
from ascend_graph.prototypes import find_prototype, parse_text
from ascend_graph.registration import RegisteredOp, bind, make_converter, read_schema
from ascend_graph.shapes import RelationError, ShapeError, parse_relation

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what torch itself deprecates, in modules that torchair imports
    import torch_npu  # noqa: F401 - torchair can only be imported after it
    import torchair
    from torchair.ge._ge_graph import TensorSpec

sys.path.insert(0, str(Path(__file__).parent))
import absent_kernels

# Compiling warns of much that is torch's and torchair's own affair.
pytestmark = pytest.mark.filterwarnings("default")

FLOAT = "TensorType({DT_FLOAT})"
HALVES = f"""
    .INPUT(x, {FLOAT})
    .OPTIONAL_INPUT(bias, {FLOAT})
    .OUTPUT(y, {FLOAT})
    .OUTPUT(z, {FLOAT})
    .ATTR(want, Bool, true)
"""
STUBBORN = f"""
    .INPUT(x, {FLOAT})
    .OUTPUT(y, {FLOAT})
    .OUTPUT(z, {FLOAT})
    .ATTR(returned, String, "both")
"""
HEADER = f"""
REG_OP(AbsentPython) {HALVES} .OP_END_FACTORY_REG(AbsentPython)
REG_OP(AbsentCpp) {HALVES} .OP_END_FACTORY_REG(AbsentCpp)
REG_OP(AbsentShown) {HALVES} .OP_END_FACTORY_REG(AbsentShown)
REG_OP(AbsentOnly)
    .INPUT(x, {FLOAT})
    .OUTPUT(y, {FLOAT})
    .ATTR(want, Bool, true)
    .OP_END_FACTORY_REG(AbsentOnly)
REG_OP(AbsentGrown)
    .INPUT(acc, {FLOAT})
    .INPUT(x, {FLOAT})
    .OUTPUT(acc, {FLOAT})
    .OUTPUT(z, {FLOAT})
    .ATTR(want, Bool, true)
    .OP_END_FACTORY_REG(AbsentGrown)
REG_OP(AbsentParts)
    .INPUT(x, {FLOAT})
    .DYNAMIC_OUTPUT(ys, {FLOAT})
    .ATTR(count, Int, 2)
    .OP_END_FACTORY_REG(AbsentParts)
REG_OP(AbsentChunks)
    .INPUT(x, {FLOAT})
    .DYNAMIC_OUTPUT(ys, {FLOAT})
    .REQUIRED_ATTR(size, Int)
    .OP_END_FACTORY_REG(AbsentChunks)
REG_OP(AbsentCast)
    .INPUT(x, {FLOAT})
    .OUTPUT(y, TensorType({{DT_FLOAT, DT_FLOAT16}}))
    .ATTR(dst_type, Int, 1)
    .OP_END_FACTORY_REG(AbsentCast)
REG_OP(AbsentStubborn) {STUBBORN} .OP_END_FACTORY_REG(AbsentStubborn)
REG_OP(AbsentSilent) {STUBBORN} .OP_END_FACTORY_REG(AbsentSilent)
"""
#: Operators without a kernel.
MORE = f"""
REG_OP(AbsentGrow)
    .INPUT(x, {FLOAT})
    .OUTPUT(y, {FLOAT})
    .ATTR(count, Int, 3)
    .OP_END_FACTORY_REG(AbsentGrow)
REG_OP(AbsentKind)
    .INPUT(x, {FLOAT})
    .OUTPUT(y, TensorType::ALL())
    .REQUIRED_ATTR(kind, Int)
    .OP_END_FACTORY_REG(AbsentKind)
REG_OP(AbsentLists)
    .DYNAMIC_INPUT(xs, {FLOAT})
    .DYNAMIC_OUTPUT(xs, {FLOAT})
    .DYNAMIC_OUTPUT(ys, {FLOAT})
    .OP_END_FACTORY_REG(AbsentLists)
"""
KERNEL = r"""
#include <stdexcept>

#include "host_kernels.h"

void host_kernels::AbsentCpp(const AbsentCppArgs& a) {
    const int64_t elements = a.x.numel();
    for (int64_t n = 0; n < elements; ++n)
        a.y.as<float>()[n] = a.x.as<float>()[n] / 2 + (a.bias == nullptr ? 0 : a.bias->as<float>()[n]);
    if (a.want != a.z.is_given() || a.z.numel() != (a.want ? elements : 0)) {
        throw std::runtime_error("z is not what want says");
    }
    for (int64_t n = 0; n < a.z.numel(); ++n) a.z.as<float>()[n] = a.x.as<float>()[n] * 2;
}
"""
RELATION = "x[*s], bias[*s] -> y[*s], z[*s] if want else None"
RELATIONS = {
    "AbsentPython": RELATION,
    "AbsentCpp": RELATION,
    "AbsentOnly": "x[*s] -> y[*s] if want else None",
    "AbsentGrown": "acc[*s], x[*s] -> acc, z[*s] if want else None",
    "AbsentParts": "x[*s] -> ys[i < count][*s]",
    "AbsentStubborn": "x[*s] -> y[*s], z[*s]",
    "AbsentChunks": "x[n] -> ys[i < ceildiv(n, size)][min(size, n - i * size)]",
    "AbsentCast": "x[*s] -> y[*s]: dst_type",
}
#: How each operator is registered; the package does not know the relations of those that are missing above.
REGISTERED = {**RELATIONS, "AbsentShown": RELATION, "AbsentSilent": "x[*s] -> y[*s], z[*s]"}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("absent")
    kernel = directory / "kernel.cpp"
    kernel.write_text(KERNEL)
    kernels = {
        "AbsentPython": absent_kernels.halves,
        "AbsentShown": absent_kernels.halves,
        "AbsentCpp": kernel,
        "AbsentOnly": absent_kernels.only,
        "AbsentGrown": absent_kernels.grown,
        "AbsentParts": absent_kernels.parts,
        "AbsentStubborn": absent_kernels.stubborn,
        "AbsentSilent": absent_kernels.stubborn,
        "AbsentChunks": absent_kernels.chunks,
        "AbsentCast": absent_kernels.cast,
    }
    return build_operator_package(directory / "opp", parse_text(HEADER).prototypes, kernels, relations=RELATIONS)


@pytest.fixture(autouse=True)
def _selected(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(package))


@pytest.fixture
def register() -> Iterator[Callable[..., RegisteredOp]]:
    made: list[RegisteredOp] = []

    def one(op_type: str, **options: Any) -> RegisteredOp:
        options = {"shape": REGISTERED.get(op_type), **options}
        made.append(ascend_graph.register_op(op_type, **options))
        return made[-1]

    torch._dynamo.reset()
    yield one
    for operator in made:
        operator.unregister()
    torch._dynamo.reset()


@pytest.fixture
def library() -> Iterator[torch.library.Library]:
    library = torch.library.Library("absent_outputs", "DEF")
    yield library
    library._destroy()


def captured(function: Callable[..., Any]) -> Callable[..., Any]:
    """Capture a function's first call and replay it."""

    def run(*arguments: torch.Tensor) -> Any:
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph):
            results = function(*arguments)
        graph.replay()
        torch.npu.synchronize()
        return results

    return run


def compiled(backend: str, dynamic: bool) -> Callable[..., Any]:
    chosen = torchair.get_npu_backend() if backend == "GE" else backend
    return lambda function: torch.compile(function, backend=chosen, dynamic=dynamic, fullgraph=True)


MODES = [
    pytest.param(lambda function: function, id="eager"),
    pytest.param(captured, id="capture"),
    pytest.param(compiled("GE", False), id="GE"),
    pytest.param(compiled("GE", True), id="GE-dynamic"),
    pytest.param(compiled("npugraph_ex", False), id="npugraph_ex"),
    pytest.param(compiled("npugraph_ex", True), id="npugraph_ex-dynamic"),
    pytest.param(compiled("aot_eager", True), id="aot_eager-dynamic"),
]


def finished(function: Callable[..., Any], *arguments: torch.Tensor) -> None:
    """Call a function and wait for the device."""
    function(*arguments)
    torch.npu.synchronize()


def numbers(tensor: torch.Tensor | None) -> list[float] | None:
    return None if tensor is None else tensor.cpu().tolist()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op_type", ["AbsentPython", "AbsentCpp", "AbsentShown"])
@pytest.mark.parametrize("want", [True, False])
def test_an_absent_output_is_none(register: Any, mode: Any, op_type: str, want: bool) -> None:
    operator = register(op_type).overload
    run = mode(lambda x: operator(x, want=want))
    for x in (torch.tensor([2.0, 4.0, 6.0]).npu(), torch.tensor([2.0, 4.0, 6.0, 8.0]).npu()):
        y, z = run(x)
        assert numbers(y) == [v / 2 for v in x.tolist()]
        assert numbers(z) == ([v * 2 for v in x.tolist()] if want else None)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op_type", ["AbsentPython", "AbsentCpp"])
def test_what_a_graph_computes_from_the_other_outputs(register: Any, mode: Any, op_type: str) -> None:
    operator = register(op_type).overload

    def model(x: torch.Tensor) -> torch.Tensor:
        y, z = operator(x, x, want=False)
        return y + 1 if z is None else z

    assert numbers(mode(model)(torch.tensor([2.0, 4.0]).npu())) == [4, 7]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("want", [True, False])
def test_the_only_output(register: Any, mode: Any, want: bool) -> None:
    operator = register("AbsentOnly").overload

    def model(x: torch.Tensor) -> torch.Tensor:
        y = operator(x, want=want)
        return x * 10 if y is None else y * 10

    assert numbers(mode(model)(torch.tensor([1.0, 2.0]).npu())) == ([20, 30] if want else [10, 20])


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode.id != "capture"])
@pytest.mark.parametrize("want", [True, False])
def test_an_absent_output_beside_one_in_place(register: Any, mode: Any, want: bool) -> None:
    operator = register("AbsentGrown").overload
    acc, x = torch.zeros(2).npu(), torch.tensor([1.0, 2.0]).npu()

    def model(acc: torch.Tensor, x: torch.Tensor) -> Any:
        return operator(acc, x, want=want)

    z = mode(model)(acc, x)
    assert numbers(z) == ([2, 4] if want else None)
    assert numbers(acc) == [1, 2]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_list_is_empty_not_absent(register: Any, mode: Any, count: int) -> None:
    operator = register("AbsentParts").overload
    x = torch.tensor([1.0]).npu()

    def model(x: torch.Tensor) -> list[torch.Tensor]:
        return [*operator(x, count=count), x + 0]

    assert [numbers(part) for part in mode(model)(x)] == [*([1.0 + n] for n in range(count)), [1.0]]


def test_a_list_that_would_be_absent_is_refused_with_the_line() -> None:
    relation = parse_relation("x[*s] -> ys[i < count][*s] if count > 1 else None")
    with pytest.raises(RelationError, match=r"ys is a list of tensors.*Write: ys\[i < \(count if … else 0\)\]\[\*s\]"):
        relation.infer({"x": (2,)}, {"x": "float32"}, {"count": 2})


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode.id != "capture"])
@pytest.mark.parametrize("want", [True, False])
def test_an_absent_output_has_no_gradient(register: Any, mode: Any, want: bool) -> None:
    def backward(ctx: Any, grad_y: torch.Tensor, grad_z: torch.Tensor | None) -> Any:
        _, bias, _, z = ctx.saved_tensors
        assert (z is None) != want
        assert bias is None
        return grad_y / 2 + (0 if grad_z is None else grad_z * 2), None

    operator = register("AbsentPython", backward=backward).overload

    def loss(x: torch.Tensor) -> torch.Tensor:
        y, z = operator(x, want=want)
        return y.sum() if z is None else y.sum() + z.sum()

    x = torch.tensor([1.0, 2.0]).npu().requires_grad_()
    mode(loss)(x).backward()
    assert numbers(x.grad) == ([2.5, 2.5] if want else [0.5, 0.5])


# --------------------------------------------------------------------------------------------------- lists of outputs


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode.id != "capture"])
def test_a_number_of_outputs_that_depends_on_a_size(register: Any, mode: Any) -> None:
    """As with torch.split, a graph is made for each number of tensors, not for each size."""
    operator = register("AbsentChunks").overload
    run = mode(lambda x: [part + 1 for part in operator(x, size=3)])
    torch._dynamo.utils.counters.clear()
    for n in (5, 6, 4, 8):
        x = torch.arange(float(n))
        assert [numbers(part) for part in run(x.npu())] == [(part + 1).tolist() for part in x.split(3)]


@pytest.mark.parametrize("backend", ["GE", "npugraph_ex", "aot_eager"])
def test_a_graph_is_for_one_number_of_outputs(register: Any, backend: str) -> None:
    operator = register("AbsentChunks").overload
    torch._dynamo.utils.counters.clear()
    run = compiled(backend, True)(lambda x: operator(x, size=3))
    for n in (5, 4, 6, 8, 9, 7):
        assert len(run(torch.ones(n).npu())) == -(-n // 3)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] <= 4  # a last chunk that is full is a case of its own


def test_a_number_of_outputs_beyond_reason(register: Any) -> None:
    operator = register("AbsentChunks", shape="x[n] -> ys[i < 0 - n][size]").overload
    with pytest.raises(ShapeError, match="ys would have -4 tensors; expected 0 to 65536"):
        operator(torch.ones(4, device="meta"), size=2)


@pytest.mark.parametrize("schema", ["f(Tensor(a!)[] xs) -> ()", "f(Tensor(a!)[] xs) -> Tensor[]"])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_written_list_has_as_many_outputs_as_inputs(schema: str, count: int) -> None:
    """The meta function says nothing of it: what is written is not returned."""
    bridge()  # what GE knows of operators
    ascend_graph.load_prototypes(MORE)
    prototype = find_prototype("AbsentLists")
    convert = make_converter(bind(read_schema(torch._C.parse_schema(f"absent::{schema}")), prototype))
    ge = torchair_pieces().ge
    with ge.GeGraph() as graph:
        xs = [ge.Data(index=n, dtype=0, shape=[2], placement="NPU") for n in range(count)]
        meta = torch.empty(2, device="meta")
        made = convert(xs, meta_outputs=[TensorSpec(meta)] * 2 if "-> Tensor[]" in schema else None)
    (node,) = [op for op in graph.op if op.type == "AbsentLists"]
    returned = 2 if "-> Tensor[]" in schema else 0
    assert [d.name for d in node.output_desc] == [f"xs{n}" for n in range(count)] + [f"ys{n}" for n in range(returned)]
    assert made is None or len(made) == returned


# --------------------------------------------------------------------------------------------------- None as an
# argument


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode.id != "capture"])
def test_none_is_the_default_of_an_attr(library: torch.library.Library, register: Any, mode: Any) -> None:
    library.define("cast(Tensor x, *, ScalarType? dst_type=None) -> Tensor y")
    library.impl("cast", lambda x, *, dst_type=None: x.to(dst_type or torch.float16, copy=True), "PrivateUse1")
    operator = register("AbsentCast", eager=torch.ops.absent_outputs.cast).overload
    run = mode(lambda x: (operator(x), operator(x, dst_type=None), operator(x, dst_type=torch.float32)))
    assert [y.dtype for y in run(torch.ones(2).npu())] == [torch.float16, torch.float16, torch.float32]


def test_what_none_stands_for_in_a_relation(library: torch.library.Library, register: Any) -> None:
    ascend_graph.load_prototypes(MORE)
    library.define("grow(Tensor x, *, int? count=None) -> Tensor y")
    eager = torch.ops.absent_outputs.grow
    x = torch.empty(2, device="meta")
    plain = register("AbsentGrow", eager=eager, shape="x[n] -> y[n * count]").overload
    assert (plain(x).shape, plain(x, count=2).shape) == ((6,), (4,))
    register("AbsentGrow", eager=eager, shape="x[n] -> y[n * count]", override=True)
    said = ascend_graph.register_op(
        "AbsentGrow", eager=eager, shape="x[n] -> y[n if count is None else n * count]", override=True
    )
    assert said.overload(x).shape == (2,), "a relation that asks for None sees it"
    said.unregister()


def test_a_dtype_that_nothing_stands_for_says_what_to_write(library: torch.library.Library, register: Any) -> None:
    ascend_graph.load_prototypes(MORE)
    library.define("cast2(Tensor x, *, ScalarType? kind=None) -> Tensor y")
    eager = torch.ops.absent_outputs.cast2
    x = torch.empty(2, device="meta")
    operator = register("AbsentKind", eager=eager, shape="x[n] -> y[n]: kind").overload
    with pytest.raises(ShapeError, match="attr kind is None; expected a dtype. Write: kind if kind is not None else …"):
        operator(x)
    followed = "x[n] -> y[n]: kind if kind is not None else dtype(x)"
    operator = register("AbsentKind", eager=eager, shape=followed, override=True).overload
    assert [operator(x).dtype, operator(x, kind=torch.int8).dtype] == [torch.float32, torch.int8]


# ------------------------------------------------------------------------------------------------------ Python kernels


@pytest.mark.parametrize(
    ("returned", "match"),
    [
        (
            "first",
            r"returned None for output z, which the caller allocated; expected a tensor of shape \(2,\).*else None'",
        ),
        ("second", r"returned None for output y, which the caller allocated"),
        ("list", r"returned a list of 1 tensors for output z; expected a tensor of shape \(2,\)"),
        ("number", r"returned int 3 for output z; expected a tensor of shape \(2,\)"),
        ("shape", r"returned output z of shape \(4,\); expected \(2,\)"),
    ],
    ids=["first", "second", "list", "number", "shape"],
)
@pytest.mark.parametrize("mode", [MODES[0], MODES[2], MODES[4]])
def test_what_a_kernel_returns_instead_is_named(register: Any, mode: Any, returned: str, match: str) -> None:
    operator = register("AbsentStubborn").overload
    with pytest.raises(Exception, match=rf"(?s)AbsentStubborn: the (Python )?kernel {match}"):
        finished(mode(lambda x: operator(x, returned=returned)), torch.ones(2).npu())


@pytest.mark.parametrize("mode", [MODES[0], MODES[4]])
def test_a_tensor_for_an_absent_output_is_named(register: Any, mode: Any) -> None:
    operator = register("AbsentStubborn", shape="x[*s] -> y[*s], z[*s] if rank(x) > 1 else None").overload
    with pytest.raises(
        Exception, match=r"(?s)a tensor of shape \(2,\) for output z, which is absent in this call; expected None"
    ):
        finished(mode(lambda x: operator(x)), torch.ones(2).npu())


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_graph_that_reads_what_the_kernel_leaves_out(register: Any, dynamic: bool) -> None:
    """The package has no relation, so that only the run shows it."""
    operator = register("AbsentSilent").overload
    for model in (lambda x: operator(x, returned="first"), lambda x: operator(x, returned="first")[1] + 1):
        torch._dynamo.reset()
        with pytest.raises(Exception, match="AbsentSilent.*returned None for output z, which the graph reads"):
            compiled("GE", dynamic)(model)(torch.ones(2).npu())
