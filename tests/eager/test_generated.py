"""The C++ that ``ascend-graph new`` writes, compiled and run: arguments, shapes, gradients, bindings, GE graphs."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import preloaded
import pytest
import torch
import torchair
from eager_package import SHAPES, prototype
from hypothesis import HealthCheck, given, settings
from test_arguments import RECORDER, calls, check_recorded

from ascend_graph import registered_ops
from ascend_graph.shapes import parse_relation


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(call=calls())
def test_all_arguments_arrive(library: Any, recorded: Callable[[], dict[str, Any]], call: Any) -> None:
    inputs, attrs = call
    check_recorded(recorded, call, torch.ops.generated_ops.recorder(*inputs, **attrs))
    check_recorded(
        recorded, call, library.recorder(*inputs, **{a.name: attrs[a.name] for a in RECORDER.attrs if a.name in attrs})
    )
    bound = {name: list(value) if isinstance(value, tuple) else value for name, value in attrs.items()}
    check_recorded(recorded, call, library._generated._C.recorder(*inputs, **bound))


@pytest.mark.parametrize("device", ["npu", "meta"])
@pytest.mark.parametrize(("shape", "flag"), [((3, 4), True), ((2, 1, 3, 4), False), ((5, 1, 4), True)])
@pytest.mark.parametrize("bias", [True, False])
def test_shapes_are_those_of_the_relation(
    library: Any, device: str, shape: tuple[int, ...], flag: bool, bias: bool
) -> None:
    x, w = torch.zeros(shape, device=device, dtype=torch.float16), torch.zeros(4, 7, device=device)
    b = torch.zeros(7, device=device) if bias else None
    y, z = torch.ops.generated_ops.probe(x, w, b, n=5, flag=flag, dtype=torch.bfloat16)
    expected = parse_relation(SHAPES["Probe"]).infer(
        {"x": shape, "w": (4, 7), "b": (7,) if bias else None},
        {"x": "float16", "w": "float32", "b": "float32"},
        {"n": 5, "flag": flag, "dtype": "bfloat16"},
    )
    assert [(tuple(t.shape), str(t.dtype).removeprefix("torch.")) for t in (y, z)] == list(expected)
    assert y.device.type == device


@pytest.mark.parametrize(
    ("shapes", "match"),
    [
        (((4,), (4, 7)), r"x\[..., m, k\]: expected at least 2 dimension\(s\), the input has 1: \[4\]"),
        (((3, 5), (4, 7)), r"w\[k, q\]: the size is 4, but k is 5"),
        (((0, 4), (4, 7)), "m > 0 must hold: 0 > 0"),
    ],
)
def test_shapes_that_do_not_fit(library: Any, shapes: Any, match: str) -> None:
    with pytest.raises(RuntimeError, match=match):
        torch.ops.generated_ops.probe(*[torch.zeros(s).npu() for s in shapes])


def test_gradients(library: Any) -> None:
    x, y = torch.randn(2, 3).npu().requires_grad_(), torch.randn(2, 3).npu().requires_grad_()
    z = library.add_custom(x, y)
    torch.testing.assert_close(z.detach().cpu(), (x + y).detach().cpu())
    weight = torch.randn(2, 3).npu()
    (z * weight).sum().backward()
    torch.testing.assert_close(x.grad.cpu(), weight.cpu())
    torch.testing.assert_close(y.grad.cpu(), weight.cpu())


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_of_some_inputs_and_outputs(library: Any, compiled: bool) -> None:
    def loss(x: torch.Tensor, b: torch.Tensor | None) -> torch.Tensor:
        y, index = torch.ops.generated_ops.square(x, b, scale=3.0)
        return (y * (index + 1)).sum()

    function = torch.compile(loss, backend="aot_eager", fullgraph=True) if compiled else loss
    x = torch.tensor([1.0, 2.0, 3.0]).npu().requires_grad_()
    for b in (None, torch.ones(3).npu()):
        x.grad = None
        function(x, b).backward()
        assert x.grad.cpu().tolist() == [6 * v * n for v, n in ((1, 1), (2, 2), (3, 3))]
    y, index = torch.ops.generated_ops.square(x)
    assert y.requires_grad
    assert not index.requires_grad


def test_double_backward(library: Any) -> None:
    x = torch.tensor([1.0, 2.0]).npu().requires_grad_()
    y, _ = torch.ops.generated_ops.square(x, scale=2.0)
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert first.detach().cpu().tolist() == [4, 8]
    (second,) = torch.autograd.grad((first * x).sum(), x)
    assert second.cpu().tolist() == [8, 16]


def test_a_function_without_gradient_flow(library: Any) -> None:
    x = torch.ones(2).npu().requires_grad_()
    library.square(x)[0].detach()
    with torch.no_grad():
        assert not library.add_custom(x, x).requires_grad
    y = torch.ones(2).npu()
    library.add_custom(x, y).sum().backward()
    assert y.grad is None
    assert x.grad.cpu().tolist() == [1, 1]


def test_a_failing_kernel_and_a_missing_one(library: Any) -> None:
    x = torch.zeros(2).npu()
    with pytest.raises(
        RuntimeError,
        match=r"(?s)generated_ops::failing: aclnnFailing failed with error 561000: "
        r".*asked to fail.*Float\[2\] on npu:0",
    ):
        library.failing(x)
    with pytest.raises(
        RuntimeError, match=r"(?s)aclnnNowhereGetWorkspaceSize is in no library.*ASCEND_CUSTOM_OPP_PATH"
    ):
        library.nowhere(x)
    assert library.failing(x, fail=False).shape == (2,)


def test_an_absent_output(library: Any) -> None:
    x = torch.zeros(2).npu()
    assert [t.cpu().tolist() for t in library.maybe(x)] == [[1, 1], [2, 2]]
    y, z = library.maybe(x, with_z=False)
    assert z is None
    assert y.cpu().tolist() == [1, 1]


def test_bad_arguments(library: Any) -> None:
    x = torch.zeros(2).npu()
    with pytest.raises(RuntimeError, match="Expected NPU tensor"):
        library.add_custom(x, torch.zeros(2))
    with pytest.raises(RuntimeError, match="generated_ops::probe: argument w is None"):
        library.probe(x, None)
    with pytest.raises(RuntimeError, match="tensor does not have a device"):  # PyTorch's own: it is differentiable
        library.add_custom(x, None)
    with pytest.raises(RuntimeError, match=r"y\[\*s\]: the sizes are \[3\], but \*s is \[2\]"):
        library.add_custom(x, torch.zeros(3).npu())
    assert library.add_custom(x, x).cpu().tolist() == [0, 0]


def test_in_place_and_graph_mode(library: Any) -> None:
    import torchair

    x = torch.zeros(3).npu()
    assert library.increment(x) is None
    assert x.cpu().tolist() == [1, 1, 1]

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.ops.generated_ops.add_custom(x, y) * 2

    compiled = torch.compile(step, backend=torchair.get_npu_backend(), fullgraph=True)
    y = torch.randn(3).npu()
    torch.testing.assert_close(compiled(x, y).cpu(), step(x, y).cpu())


def test_the_library_alone_writes_lazily_negated_tensors(library: Any, package: Path) -> None:
    """PyTorch's fallback, which asks what writes for a result, ends the process of operators that nobody registered."""
    code = f"""
        import torch, torch_npu
        torch.ops.load_library({library._C.__file__!r})
        lazy, plain = torch.complex(torch.ones(3), torch.ones(3)).npu().conj().imag, torch.full((3,), 3.0).npu()
        torch.ops.generated_ops.add_into(plain, lazy)
        torch.ops.generated_ops.add_to(plain, torch._neg_view(plain.clone()))
        print(lazy.is_neg(), lazy.tolist(), plain.tolist())
    """
    done = preloaded.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "ASCEND_CUSTOM_OPP_PATH": str(package)},
    )
    assert done.stdout == "True [2.0, 2.0, 2.0] [0.0, 0.0, 0.0]\n", done.stderr


def test_a_public_schema_of_its_own(library: Any) -> None:
    """Names, order and defaults are the schema's; what the kernel is given is the prototype's."""
    mixed = torch.ops.public_ops.mixed
    x, y, b = torch.rand(3, 4), torch.rand(4), torch.rand(4)
    on_npu = {"other": y.npu(), "self": x.npu()}
    for values, expected in (
        ({}, x + 1.5 * y),
        ({"scale": 3.0, "bias": b.npu()}, x + 3 * y + b),
        ({"flip": True}, x - 1.5 * y),
    ):
        for made in (mixed(**on_npu, **values), library.mixed(y.npu(), x.npu(), **values)):
            rest, z = made
            torch.testing.assert_close(z.cpu(), expected)
            torch.testing.assert_close(rest.cpu(), -y)
    rest, z = library._C.mixed(y.npu(), x.npu(), 2.0)
    torch.testing.assert_close(z.cpu(), x + 2 * y)
    with pytest.raises(RuntimeError, match=r"y\[m\]: expected 1 dimension\(s\), the input has 2"):
        mixed(x.npu(), x.npu())
    for backend in (torchair.get_npu_backend(), "npugraph_ex"):
        torch._dynamo.reset()
        compiled = torch.compile(lambda y, x: mixed(y, x, flip=True)[1], backend=backend, fullgraph=True)
        torch.testing.assert_close(compiled(y.npu(), x.npu()).cpu(), x - 1.5 * y)
    y, x = y.npu().requires_grad_(), x.npu().requires_grad_()
    mixed(y, x, 3.0)[1].sum().backward()
    torch.testing.assert_close(y.grad.cpu(), torch.full((4,), 9.0))
    torch.testing.assert_close(x.grad.cpu(), torch.ones(3, 4))


def test_every_operator_is_registered(library: Any) -> None:
    mine = {r.op_type for r in registered_ops() if r.overload.namespace in ("generated_ops", "public_ops")}
    assert mine == {
        "Recorder",
        "Nowhere",
        "Failing",
        "Increment",
        "Gather1",
        "Probe",
        *SHAPES,
        "AddCustomGrad",
    }
    assert prototype("AddCustom").op_type in mine
