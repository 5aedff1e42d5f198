"""Triton-Ascend's stock wheel on the host: kernels of ``kernels.py`` on npu tensors, eager, captured and in graphs."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ascend_graph.host import build_operator_package
from ascend_graph.host.triton.ir import TritonProgramError
from ascend_graph.host.triton.memory import TritonKernelError
from ascend_graph.host.triton.nested import PythonKernelCall

_IS_THERE = (
    importlib.util.find_spec("triton") is not None and importlib.util.find_spec("triton.backends.ascend") is not None
)
pytestmark = [
    pytest.mark.skipif(not _IS_THERE, reason="triton-ascend is not installed"),
    pytest.mark.filterwarnings("ignore"),  # compiling warns of much that is not ours
]

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton's own cache of compiled kernels is this test's."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    torch._dynamo.reset()


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(HERE))
    return importlib.import_module("kernels")


def add(kernels: Any, x: torch.Tensor, y: torch.Tensor, block: int = 256) -> torch.Tensor:
    z = torch.empty_like(x)
    kernels.vector_add[(-(-x.numel() // block),)](x, y, z, x.numel(), block=block)
    return z


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.int64])
def test_eager_adds_as_pytorch_does(kernels: Any, dtype: torch.dtype) -> None:
    x, y = ((torch.randn(1000) * 20).to(dtype).npu() for _ in range(2))
    assert torch.equal(add(kernels, x, y), x + y)


def softmax(kernels: Any, x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    kernels.row_softmax[(x.shape[0],)](x, y, x.stride(0), x.shape[1], block=128)
    return y


def layer_norm(kernels: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    kernels.layer_norm[(x.shape[0],)](x, weight, bias, y, x.shape[1], 1e-5, block=32)
    return y


def matmul(kernels: Any, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    c = torch.empty(a.shape[0], b.shape[1], device=a.device)
    grid = (-(-a.shape[0] // 16), -(-b.shape[1] // 32))
    kernels.matmul[grid](a, b, c, a.shape[0], b.shape[1], a.shape[1], rows=16, cols=32, inner=16)
    return c


def attention(kernels: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(q)
    heads, length, width = q.shape
    grid = (-(-length // 16), heads)
    kernels.causal_attention[grid](q, k, v, out, length, width**-0.5, block=16, width=width)
    return out


def delta_rule(kernels: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, beta: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(q)
    kernels.delta_rule[(q.shape[0],)](q, k, v, beta, out, q.shape[1], chunk=16, width=q.shape[2])
    return out


def delta_rule_reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, beta: torch.Tensor) -> torch.Tensor:
    """The recurrence, one step after another: the state forgets what it holds of a key as it takes the new value."""
    out = torch.empty_like(q)
    for head in range(q.shape[0]):
        state = torch.zeros(q.shape[2], q.shape[2])
        for t in range(q.shape[1]):
            error = v[head, t] - k[head, t] @ state
            state = state + beta[head, t] * torch.outer(k[head, t], error)
            out[head, t] = q[head, t] @ state
    return out


def _draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def _causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


Case = tuple[Callable[..., torch.Tensor], Callable[..., torch.Tensor], Callable[[], list[torch.Tensor]]]

#: Launch, reference on the CPU, and inputs.
CASES: dict[str, Case] = {
    "softmax": (softmax, lambda x: torch.softmax(x, 1), lambda: [_draw(7, 100)]),
    "layer norm": (
        layer_norm,
        lambda x, w, b: torch.nn.functional.layer_norm(x, (x.shape[1],), w, b),
        lambda: [_draw(9, 70), _draw(70), _draw(1, 70)[0]],
    ),
    "matmul": (matmul, torch.matmul, lambda: [_draw(40, 50), _draw(50, 33)]),
    "attention": (attention, _causal, lambda: [_draw(2, 70, 32), _draw(2, 70, 32) * 2, _draw(2, 70, 32) + 1]),
    "delta rule": (
        delta_rule,
        delta_rule_reference,
        lambda: [_draw(2, 37, 16), torch.nn.functional.normalize(_draw(2, 37, 16) + 1, dim=-1), _draw(2, 37, 16) * 2,
                 torch.sigmoid(_draw(2, 37))],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CASES))
@pytest.mark.parametrize("mode", ["eager", "captured", "npugraph_ex"])
def test_kernel_agrees_with_the_cpu(kernels: Any, name: str, mode: str) -> None:
    launch, reference, draw = CASES[name]
    inputs = draw()
    on_device = [x.npu() for x in inputs]

    def call(*xs: torch.Tensor) -> torch.Tensor:
        return launch(kernels, *xs)

    if mode == "eager":
        result = call(*on_device)
    elif mode == "captured":
        call(*on_device)  # compiles
        static = [torch.zeros_like(x) for x in on_device]
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph):
            result = call(*static)
        for place, x in zip(static, on_device, strict=True):
            place.copy_(x)
        graph.replay()
    else:
        result = torch.compile(call, backend="npugraph_ex", fullgraph=True)(*on_device)
    torch.testing.assert_close(result.cpu(), reference(*inputs), rtol=2e-4, atol=2e-4)


def test_triton_op_is_part_of_graphs(kernels: Any) -> None:
    @torch.library.triton_op("ascend_graph_tests::triton_add", mutates_args={})
    def triton_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = torch.empty_like(x)
        grid = (-(-x.numel() // 128),)
        torch.library.wrap_triton(kernels.vector_add)[grid](x, y, z, x.numel(), block=128)
        return z

    x, y = torch.randn(300).npu(), torch.randn(300).npu()
    assert torch.equal(triton_add(x, y), x + y)
    compiled = torch.compile(lambda a, b: triton_add(a * 2, b) - 1, backend="npugraph_ex", fullgraph=True)
    for _ in range(2):
        x = torch.randn(300).npu()
        assert torch.equal(compiled(x, y), x * 2 + y - 1)


def test_launches_follow_the_order_of_their_stream(kernels: Any) -> None:
    x, y = torch.ones(300).npu(), torch.ones(300).npu()
    side = torch.npu.Stream()
    side.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(side):
        for _ in range(3):
            x = add(kernels, x, y)
    torch.npu.current_stream().wait_stream(side)
    assert x.tolist() == [4.0] * 300


def test_unmasked_tail_is_named_with_kernel_line_and_argument(kernels: Any) -> None:
    x = torch.ones(1000).npu()
    kernels.unmasked_tail[(4,)](x, torch.empty_like(x), 1000, block=256)  # the launch succeeds, as on a device
    line = 1 + Path(kernels.__file__).read_text().splitlines().index(
        "    tl.store(z + places, tl.load(x + places), places < n)"
    )
    with pytest.raises(RuntimeError, match=f"507015[^$]*kernel unmasked_tail: load at .*kernels.py:{line}: reads"):
        torch.npu.synchronize()
    assert torch.equal(add(kernels, x, x), x + x)  # the device goes on


def test_tensor_on_the_cpu_is_refused_by_the_launch(kernels: Any) -> None:
    x = torch.ones(8).npu()
    with pytest.raises(ValueError, match=r"argument y cannot be accessed from Triton \(cpu tensor\?\)"):
        kernels.vector_add[(1,)](x, torch.ones(8), x, 8, block=8)


def test_index_of_the_largest(kernels: Any) -> None:
    x = torch.tensor([[1.0, 5, 5, 2], [7, 0, 0, 7], [float("-inf"), -1, -2, -3]]).npu()
    values, places = torch.empty(3).npu(), torch.empty(3, dtype=torch.int32).npu()
    kernels.largest_and_where[(3,)](x, values, places, columns=4)
    assert values.tolist() == [5.0, 7.0, -1.0]
    assert places.tolist() == [1, 0, 1]


def test_programs_whose_loops_differ_and_that_return_early(kernels: Any) -> None:
    x = torch.tensor([1, 2, 3, 7, 27, 97], dtype=torch.int32).npu()
    steps = torch.full((8,), -1, dtype=torch.int32).npu()
    kernels.collatz[(8,)](x, steps, 6)
    assert steps.tolist() == [0, 1, 7, 16, 111, 118, -1, -1]


def test_atomics_return_each_value_once(kernels: Any) -> None:
    counter, tickets = torch.zeros(1, dtype=torch.int32).npu(), torch.zeros(100, dtype=torch.int32).npu()
    kernels.count_up[(100,)](counter, tickets)
    assert counter.item() == 100
    assert sorted(tickets.tolist()) == list(range(100))


def test_tables_of_addresses(kernels: Any) -> None:
    x, out = torch.randn(4, 64), torch.empty(4, 64)
    on_device, copied = x.npu(), out.npu()
    kernels.copy_rows[(4,)](torch.tensor([row.data_ptr() for row in on_device]).npu(), copied, width=64)
    assert torch.equal(copied.cpu(), x)
    with PythonKernelCall():  # its tensors are the CPU's
        kernels.copy_rows[(4,)](torch.tensor([row.data_ptr() for row in x]), out, width=64)
        assert torch.equal(out, x)
        with pytest.raises(TritonKernelError, match="address 0x10 is not in device memory"):
            kernels.copy_rows[(1,)](torch.tensor([16]), out, width=64)


def test_race_of_stores_is_told(kernels: Any, capfd: pytest.CaptureFixture[str]) -> None:
    out = torch.zeros(1, dtype=torch.int32).npu()
    kernels.all_write[(4,)](out)
    torch.npu.synchronize()
    assert "two programs write different values, 0 and 1, to one address" in capfd.readouterr().err


@pytest.mark.parametrize("name", ["endless", "endless_spin"])
def test_kernel_that_never_ends_is_ended(kernels: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("ASCEND_GRAPH_KERNEL_TIMEOUT", "0.5")
    getattr(kernels, name)[(2,)](torch.zeros(1).npu())
    with pytest.raises(RuntimeError, match=f"507014[^$]*kernel {name} did not end in 0.5 seconds"):
        torch.npu.synchronize()


def test_features_of_the_device_compiler_are_refused_by_name(kernels: Any) -> None:
    with pytest.raises(Exception, match=r"tt.elementwise_inline_asm is not there on the host"):
        kernels.assembly[(1,)](torch.ones(16, dtype=torch.int32).npu())


def test_autotune_and_heuristics(kernels: Any) -> None:
    import triton

    configs = [triton.Config({"block": 64}), triton.Config({"block": 256})]
    tuned = triton.autotune(configs=configs, key=["n"])(kernels.vector_add)
    chosen = triton.heuristics({"block": lambda arguments: triton.next_power_of_2(arguments["n"])})(kernels.vector_add)
    x, y = torch.randn(500).npu(), torch.randn(500).npu()
    for kernel in (tuned, chosen):
        z = torch.zeros_like(x)
        kernel[lambda meta: (-(-500 // meta["block"]),)](x, y, z, 500)
        assert torch.equal(z, x + y)


@pytest.mark.parametrize("mode", ["captured", "npugraph_ex"])
def test_autotune_is_refused_by_name_where_a_capture_has_the_first_launch(kernels: Any, mode: str) -> None:
    import triton

    configs = [triton.Config({"block": 64}), triton.Config({"block": 256})]
    tuned = triton.autotune(configs=configs, key=["n"])(kernels.vector_add)
    x, y = torch.randn(500).npu(), torch.randn(500).npu()

    @torch.library.custom_op(f"ascend_graph_tests::tuned_{mode}", mutates_args=())
    def call(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = torch.zeros_like(x)
        tuned[lambda meta: (-(-500 // meta["block"]),)](x, y, z, 500)
        return z

    call.register_fake(lambda x, y: torch.empty_like(x))

    def run() -> torch.Tensor:
        if mode == "npugraph_ex":
            torch._dynamo.reset()
            return torch.compile(lambda x, y: call(x, y) * 2, backend="npugraph_ex", fullgraph=True)(x, y)
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph):
            result = call(x, y) * 2
        graph.replay()
        return result

    with pytest.raises(TritonProgramError, match=r"launch it once with these sizes before the capture"):
        run()
    call(x, y)
    assert torch.equal(run(), (x + y) * 2)


def test_autotune_clears_no_cache_of_the_device() -> None:
    import triton

    assert triton.runtime.driver.active.get_empty_cache_for_benchmark().nbytes < 1024


def test_memory_that_was_released_before_a_replay(kernels: Any) -> None:
    x = torch.ones(6 << 20).npu()  # of this size the allocator gives a tensor memory of its own
    y, z = torch.ones(300).npu(), torch.zeros(300).npu()
    kernels.vector_add[(2,)](x, y, z, 300, block=256)
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        kernels.vector_add[(2,)](x, y, z, 300, block=256)
    del x
    torch.npu.empty_cache()
    graph.replay()
    with pytest.raises(RuntimeError, match="the memory of x was released"):
        torch.npu.synchronize()


def test_libraries_that_ask_for_cores_before_a_device_is_used() -> None:
    program = (
        "import torch, triton; driver = triton.runtime.driver.active; "
        "print(driver.get_current_target().backend, driver.utils.get_device_properties(0)['num_vectorcore'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["npu", "48"], done.stderr


PROTOTYPE = """
REG_OP(TritonScaledAdd)
    .INPUT(x, TensorType({DT_FLOAT}))
    .INPUT(y, TensorType({DT_FLOAT}))
    .OUTPUT(z, TensorType({DT_FLOAT}))
    .ATTR(scale, Float, 1.0)
    .OP_END_FACTORY_REG(TritonScaledAdd)
"""


@pytest.mark.slow
@pytest.mark.parametrize("has_kernel", [False, True], ids=["no kernel for GE", "a Python kernel for GE"])
def test_graph_of_ge_needs_a_kernel_in_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_kernel: bool
) -> None:
    header = tmp_path / "op_proto.h"
    header.write_text(PROTOTYPE)
    options = []
    if has_kernel:
        monkeypatch.syspath_prepend(str(HERE))
        kernel = importlib.import_module("package_kernel").scaled_add
        options = ["--opp", str(build_operator_package(tmp_path / "opp", header, {"TritonScaledAdd": kernel}))]
    command = [
        sys.executable,
        "-m",
        "ascend_graph.host",
        "--quiet",
        *options,
        str(HERE / "graph_program.py"),
        str(header),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    if has_kernel:
        assert done.stdout.strip() == "equal", done.stderr
    else:
        assert "the host runtime has no kernel for GE operator TritonScaledAdd" in done.stderr
