"""Kinds of programs that graphs of torch_npu's wheel do not take (docs/wheel-faults.md): each test fails once they do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch_npu
from torch._decomp import decomposition_table, meta_table
from torch._dynamo.decorators import mark_unbacked
from torch._dynamo.exc import BackendCompilerFailed
from torch._subclasses import FakeTensorMode
from torch.nn.functional import dropout
from torch.utils.checkpoint import checkpoint

T = torch.Tensor
Program = Callable[..., Any]
pytestmark = [
    pytest.mark.skipif(not torch_npu.__version__.startswith("2.13."), reason="they are torch_npu 2.13's"),
    # Compiling warns of much that is torch's and torchair's own affair.
    pytest.mark.filterwarnings("default"),
]


def ge(function: Program, **options: Any) -> Program:
    import torchair

    return torch.compile(function, backend=torchair.get_npu_backend(), fullgraph=True, **options)


def captured(function: Program, **options: Any) -> Program:
    return torch.compile(function, backend="npugraph_ex", fullgraph=True, **options)


MODES = [pytest.param(ge, id="GE"), pytest.param(captured, id="npugraph_ex")]


@pytest.fixture(autouse=True)
def _compiled_anew() -> None:
    torch._dynamo.reset()


@pytest.fixture
def torchair_metas(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """TorchAir's meta functions, also where another file of tests has used the wheel's Inductor, which replaces them."""
    from torchair import _utils

    for op, function in _utils.npu_meta_table.items():
        monkeypatch.delitem(meta_table, op, raising=False)
        monkeypatch.setitem(op.py_kernels, torch._C.DispatchKey.Meta, function)
        if op not in _utils.avoid_make_fallback_table:
            monkeypatch.setitem(decomposition_table, op, function)
        op._dispatch_cache.clear()
    FakeTensorMode.cache_clear()
    yield
    monkeypatch.undo()
    for op in _utils.npu_meta_table:
        op._dispatch_cache.clear()
    FakeTensorMode.cache_clear()


def numbers(*sizes: int) -> T:
    return torch.arange(1.0, 1.0 + torch.Size(sizes).numel()).reshape(sizes)


def branches(x: T) -> Any:
    return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))


@torch.compiler.nested_compile_region
def region(x: T) -> T:
    return x.sin() + 1


@pytest.mark.xfail(strict=True, raises=BackendCompilerFailed, reason="subgraphs of docs/wheel-faults.md")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", [branches, lambda x: region(region(x))], ids=["cond", "nested_compile_region"])
def test_a_program_with_subgraphs(mode: Any, program: Program) -> None:
    torch.testing.assert_close(mode(program)(numbers(3).npu()).cpu(), program(numbers(3)))


@pytest.mark.xfail(strict=True, raises=BackendCompilerFailed, reason="sizes-from-data of docs/wheel-faults.md")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("marked", [True, False])
def test_a_size_that_is_not_known_when_a_graph_is_compiled(mode: Any, marked: bool) -> None:
    x = numbers(3).npu()
    if marked:
        mark_unbacked(x, 0)
    compiled = mode((lambda x: x * 2) if marked else (lambda x: x[x > 1] * 2))
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        assert compiled(x).tolist() == ([2, 4, 6] if marked else [4, 6])


class Bare(T):
    pass


@pytest.mark.xfail(strict=True, raises=TypeError, reason="bare-subclasses of docs/wheel-faults.md")
@pytest.mark.parametrize("mode", MODES)
def test_a_subclass_without_torch_dispatch(mode: Any) -> None:
    assert mode(lambda x: x * 2)(numbers(3).npu().as_subclass(Bare)).tolist() == [2, 4, 6]


@pytest.mark.xfail(strict=True, raises=NameError, reason="overlapping-inputs of docs/wheel-faults.md")
def test_inputs_that_overlap_and_are_written_with_dynamic_sizes() -> None:
    base = numbers(4).npu()
    captured(lambda a, b: (a.add_(1), b * 1)[1], dynamic=True)(base[:3], base[1:])


@pytest.mark.xfail(strict=True, raises=BackendCompilerFailed, reason="checkpointed-dropout of docs/wheel-faults.md")
@pytest.mark.parametrize("mode", MODES)
def test_dropout_that_is_computed_again_for_the_gradient(mode: Any) -> None:
    x = torch.ones(64).npu().requires_grad_()
    y = mode(lambda x: checkpoint(lambda x: dropout(x + 0, 0.5), x, use_reentrant=False))(x)
    y.sum().backward()
    torch.testing.assert_close(x.grad, y.detach())


@pytest.mark.usefixtures("torchair_metas")
@pytest.mark.parametrize("mode", MODES)
def test_a_compiled_function_with_dropout_is_checkpointed_from_outside(mode: Any) -> None:
    x = torch.ones(64).npu().requires_grad_()
    y = checkpoint(mode(lambda x: dropout(x + 0, 0.5)), x, use_reentrant=False)
    y.sum().backward()
    torch.testing.assert_close(x.grad, y.detach())


@pytest.mark.usefixtures("torchair_metas")
@pytest.mark.xfail(strict=True, raises=AssertionError, reason="meta-functions-of-cpu-tensors of docs/wheel-faults.md")
def test_fake_tensors_of_the_cpu_are_as_the_cpu_has_them() -> None:
    import torchair

    torchair.get_npu_backend()
    _, mask = torch.native_dropout(torch.ones(64), 0.5, True)
    with FakeTensorMode():
        _, fake = torch.native_dropout(torch.ones(64), 0.5, True)
    assert fake.shape == mask.shape


@pytest.mark.xfail(strict=True, raises=RuntimeError, reason="part-of-a-conjugated-input of docs/wheel-faults.md")
@pytest.mark.parametrize("part", [torch.real, torch.imag])
def test_a_part_of_a_conjugated_input_in_a_capture(part: Program) -> None:
    x = torch.complex(numbers(3), numbers(3))
    torch.testing.assert_close(captured(lambda x: part(x) + 1)(x.npu().conj()).cpu(), part(x.conj()) + 1)


BOTH = """
import torch, torch_npu, torchair
def in_captures(): torch.compile(lambda x: x + 1, backend="npugraph_ex")(torch.ones(3).npu())
def in_ge(): print(torch.compile(lambda x: x + 1, backend=torchair.get_npu_backend())(torch.ones(3).npu()).tolist())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second", "said"),
    [("in_captures", "in_ge", "Trying to override a python impl"), ("in_ge", "in_captures", "")],
)
def test_both_compilers_in_one_process(first: str, second: str, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"{BOTH}\n{first}()\n{second}()"], capture_output=True, text=True, check=False
    )
    assert ("[2.0, 2.0, 2.0]" in done.stdout, said in done.stderr) == (not said, True)
