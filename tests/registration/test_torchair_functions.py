"""TorchAir's functions for programs, in graphs with registered operators: scopes, events, gears, passes, dumps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torchair
from writing_operators import assert_as_eager, define, numbers

import ascend_graph
from ascend_graph.checks.kinds.graph_checks import compile_for_ge_once
from ascend_graph.host.kernels import host_kernel

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
T = torch.Tensor
HEADER = """
REG_OP(TorchairScale)
    .INPUT(x, TensorType({DT_FLOAT}))
    .OUTPUT(y, TensorType({DT_FLOAT}))
    .ATTR(k, Float, 2.0)
    .OP_END_FACTORY_REG(TorchairScale)
"""


@host_kernel("TorchairScale")
def _scale(x: T, *, k: float = 2.0) -> T:
    return x * k


@pytest.fixture(scope="module")
def ops() -> Iterator[SimpleNamespace]:
    compile_for_ge_once()
    ascend_graph.load_prototypes(HEADER)
    library = torch.library.Library("torchair_functions", "DEF")
    found = define(library, registered=True)
    library.define("scale(Tensor x, float k=2.0) -> Tensor")
    for key in ("CPU", "PrivateUse1"):
        library.impl("scale", lambda x, k=2.0: x * k, key)
    found.scale = torch.ops.torchair_functions.scale.default
    found.registrations.append(ascend_graph.register_op("TorchairScale", eager=found.scale, shape="x[...] -> y[...]"))
    yield found
    for one in found.registrations:
        one.unregister()
    library._destroy()


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """TorchAir writes dumps where the program runs."""
    monkeypatch.chdir(tmp_path)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def _backend(mode: str, **options: Any) -> Any:
    config = torchair.CompilerConfig()
    if mode == "older":
        config.mode = "reduce-overhead"
    for name, value in options.items():
        owner: Any = config
        *path, last = name.split("__")
        for part in path:
            owner = getattr(owner, part)
        setattr(owner, last, value)
    return torchair.get_npu_backend(compiler_config=config)


def _compiled(program: Callable[..., Any], mode: str, dynamic: bool = False, **options: Any) -> Callable[..., Any]:
    backend = "npugraph_ex" if mode == "npugraph_ex" else _backend(mode, **options)
    return torch.compile(program, backend=backend, dynamic=dynamic, fullgraph=True)


CALLS = [(numbers(4, 3), numbers(4, 3) * 2), (numbers(4, 3) + 1, numbers(4, 3))]
SCOPES: dict[str, Callable[[], Any]] = {
    "stream": lambda: torchair.scope.npu_stream_switch("torchair_functions", 3),
    "cores": lambda: torchair.scope.limit_core_num(4, 8),
    "super kernel": lambda: torchair.scope.super_kernel("part"),
    "never timeout": lambda: torchair.scope.op_never_timeout(True),
    "dump": lambda: torchair.scope.data_dump(),
}
if hasattr(torchair.scope, "deterministic"):
    SCOPES["deterministic"] = lambda: torchair.scope.deterministic(2)
ALL = pytest.mark.parametrize("mode", ["ge", "older", "npugraph_ex"])
DYNAMIC = pytest.mark.parametrize("dynamic", [False, True])


@ALL
@DYNAMIC
@pytest.mark.parametrize("name", SCOPES)
def test_scopes(ops: Any, mode: str, dynamic: bool, name: str) -> None:
    def program(x: T, y: T, scoped: bool = True) -> T:
        a = ops.scale(x, 3.0)
        if not scoped:
            b = ops.scale(y) + a
            ops.total(x, y)
            return b + x
        with SCOPES[name]():
            b = ops.scale(y) + a
            ops.total(x, y)
        return b + x

    assert_as_eager(lambda x, y: program(x, y, scoped=False), _compiled(program, mode, dynamic), *CALLS)


@DYNAMIC
@pytest.mark.parametrize("mode", ["older", "npugraph_ex"])
def test_tagged_events(ops: Any, mode: str, dynamic: bool) -> None:
    first, second = (torchair.ops.npu_create_tagged_event(f"{mode} {dynamic} {n}") for n in range(2))

    def program(x: T, y: T, tagged: bool = True) -> T:
        a = ops.scale(x)
        if not tagged:
            ops.total(x, y)
            return a * 3 + ops.scale(y) + x
        torchair.ops.npu_tagged_event_record(first)
        with torchair.scope.npu_stream_switch("torchair_events"):
            torchair.ops.npu_tagged_event_wait(first)
            b = ops.scale(a, 3.0)
            ops.total(x, y)
            torchair.ops.npu_tagged_event_record(second)
        torchair.ops.npu_record_tagged_stream(a, "torchair_events")
        c = ops.scale(y)
        torchair.ops.npu_tagged_event_wait(second)
        return b + c + x

    assert_as_eager(lambda x, y: program(x, y, tagged=False), _compiled(program, mode, dynamic), *CALLS)


@DYNAMIC
def test_super_kernels_of_captures(ops: Any, dynamic: bool) -> None:
    """A device makes one kernel of several; here they compute the same one by one."""

    def program(x: T, y: T) -> T:
        a = ops.scale(x, 3.0)
        ops.total(x, y)
        return ops.scale(x) + a

    options = {"super_kernel_optimize": True, "super_kernel_optimize_options": {"stream_fusion": 1}}
    assert_as_eager(program, torch.compile(program, backend="npugraph_ex", dynamic=dynamic, options=options), *CALLS)


def test_super_kernel_scopes_of_a_capture(ops: Any) -> None:
    if not hasattr(torch.npu, "super_kernel_scope_begin"):
        pytest.skip("this torch_npu has no super kernels")
    x, graph = numbers(4).npu(), torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        torch.npu.super_kernel_scope_begin("part")
        y = ops.scale(x)
        torch.npu.super_kernel_scope_end("part")
    graph.super_kernel_optimize()
    x.add_(1)
    graph.replay()
    assert torch.equal(y, x * 2)


@DYNAMIC
def test_a_tensor_waits_for_another(ops: Any, dynamic: bool) -> None:
    def program(x: T, y: T, waits: bool = True) -> T:
        ops.total(x, y)
        b = ops.scale(x)
        return ops.scale(torchair.scope.npu_wait_tensor(y, b) if waits else y) + b

    assert_as_eager(lambda x, y: program(x, y, waits=False), _compiled(program, "ge", dynamic), *CALLS)


@DYNAMIC
def test_values_are_printed_where_the_program_has_them(ops: Any, dynamic: bool, capfd: Any) -> None:
    def program(x: T, y: T) -> T:
        torchair.ops.npu_print("before", x)
        ops.total(x, y)
        torchair.ops.npu_print("after", x)
        return ops.scale(x)

    compiled = _compiled(program, "ge", dynamic)
    x = torch.tensor([1.0, 2.0]).npu()
    compiled(x, x + 1)
    torch.npu.synchronize()
    printed = capfd.readouterr().err
    assert "before [1 2]" in printed
    assert "after [12 23]" in printed


@pytest.mark.parametrize("mode", ["ge", "older"])
@pytest.mark.parametrize(
    ("policy", "sizes"), [("zip", [(2, 3), (4, 5), (2, 3)]), ("product", [(2, 3), (4, 3), (2, 5)])]
)
def test_gears_of_sizes(ops: Any, mode: str, policy: str, sizes: list[tuple[int, int]]) -> None:
    def program(x: T, y: T) -> tuple[T, T]:
        a = ops.scale(x, 3.0)
        ops.total(x, y)
        return ops.scale(x) + a, x.sum()

    compiled = _compiled(program, mode, dynamic=True, inference_config__dynamic_gears_merge_policy=policy)

    def in_gears(*given: T) -> Any:
        for tensor in given:
            torchair.inference.set_dim_gears(tensor, {0: [2, 4], 1: [3, 5]})
        return compiled(*given)

    assert_as_eager(program, in_gears, *((numbers(*size), numbers(*size) * 2) for size in sizes))


@ALL
@DYNAMIC
@pytest.mark.parametrize("stage", ["pre", "post"])
def test_passes_put_registered_operators_into_graphs(ops: Any, mode: str, dynamic: bool, stage: str) -> None:
    def fuse(module: torch.fx.GraphModule, *_: Any) -> None:
        for node in module.graph.find_nodes(op="call_function", target=torch.ops.aten.mul.Tensor):
            with module.graph.inserting_after(node):
                scaled = module.graph.call_function(ops.scale, tuple(node.args))
            scaled.meta.update(node.meta)
            node.replace_all_uses_with(scaled)
            module.graph.erase_node(node)
        module.recompile()

    def program(x: T, y: T) -> T:
        ops.total(x, y)
        return x * 4.0 + y

    option = {f"post_grad_custom_{stage}_pass": fuse}
    if mode == "npugraph_ex":
        compiled = torch.compile(program, backend=mode, dynamic=dynamic, fullgraph=True, options=option)
    else:
        compiled = _compiled(program, mode, dynamic, **option)
    assert_as_eager(program, compiled, *CALLS)


@DYNAMIC
def test_patterns_of_registered_operators(ops: Any, dynamic: bool) -> None:
    """A pattern becomes a registered operator; one with a registered operator becomes another."""
    import npugraph_ex

    matched: list[str] = []

    def noted(name: str) -> Callable[[Any], bool]:
        return lambda match: matched.append(name) is None

    def writing(x: T, y: T) -> T:
        z = x.clone()
        ops.total(z, y)
        return z

    example = (torch.ones(4, 3, device="npu"), torch.ones(4, 3, device="npu"))
    patterns: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
        "read": (lambda x, y: torch.erfinv(x) * y, lambda x, y: ops.scale(x, 3.0) + y),
        "written": (lambda x, y: torch.digamma(x) - y, writing),
        "registered": (lambda x, y: torch.erfc(ops.scale(x, 5.0)) - y, lambda x, y: ops.scale(x, 7.0) + y),
    }
    for package in (torchair, npugraph_ex):
        for name, (search, replacement) in patterns.items():
            if not dynamic:  # patterns stay
                package.register_replacement(search, replacement, example, extra_check=noted(name))

    def program(x: T, y: T) -> Any:
        return torch.erfinv(x) * y, torch.digamma(x) - y, torch.erfc(ops.scale(x, 5.0)) - y

    def replaced(x: T, y: T) -> Any:
        return x * 3 + y, x * 10 + y, x * 7 + y

    for mode in ("ge", "older", "npugraph_ex"):
        torch._dynamo.reset()
        matched.clear()
        assert_as_eager(replaced, _compiled(program, mode, dynamic), *CALLS)
        assert dynamic or set(matched) == set(patterns)


@DYNAMIC
@pytest.mark.parametrize("mode", ["ge", "older"])
def test_joint_passes_leave_results_apart(ops: Any, mode: str, dynamic: bool) -> None:
    """``npu_fx_pass`` drops copies before TorchAir compiles: results were the input, or one another."""

    def program(x: T, y: T) -> tuple[T, T, T, T, T]:
        ops.total(x, y.clone())
        z = ops.scale(y)
        return x.clone(), x.clone(), z, z.clone(), y.clone()

    compiled = _compiled(program, mode, dynamic, experimental_config__npu_fx_pass=True)
    assert_as_eager(program, compiled, *CALLS)
    x, y = (tensor.clone().npu() for tensor in CALLS[0])
    places = [tensor.untyped_storage().data_ptr() for tensor in (x, y, *compiled(x, y))]
    assert len(set(places)) == 7


def test_data_of_registered_operators_is_dumped(ops: Any, tmp_path: Path) -> None:
    """TorchAir dumps operators with a converter; that registration asked for one must not leave that there is none."""

    def program(x: T, y: T) -> T:
        return ops.scale(x) + y

    assert_as_eager(program, _compiled(program, "ge", debug__data_dump__type="npy"), CALLS[0])
    dumped = [path.name for path in tmp_path.rglob("*.npy")]
    assert any("torchair_functions.scale.default.OUTPUT" in name for name in dumped)
    assert any("aten.add.Tensor.OUTPUT" in name for name in dumped)


@pytest.mark.parametrize("kind", ["txt", "pbtxt", "py"])
def test_graphs_are_dumped(ops: Any, tmp_path: Path, kind: str) -> None:
    def program(x: T, y: T) -> T:
        ops.total(x, y)
        return ops.scale(x) + y

    assert_as_eager(program, _compiled(program, "ge", debug__graph_dump__type=kind), CALLS[0])
    (dumped,) = tmp_path.glob(f"dynamo_optimized_graph_*.{kind}")
    assert "TorchairScale" in dumped.read_text()
    assert "WritesTotal" in dumped.read_text()
