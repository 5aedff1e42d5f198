"""Graphs that PyTorch keeps on disk are not taken for those of an operator that has changed since."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
import torchair
from torch._dynamo.utils import counters

import ascend_graph
from ascend_graph.host.kernels import host_kernel, registry
from ascend_graph.registration.identity.fingerprint import NoFingerprintError, fingerprint

#: Of the wheel, when PyTorch's default backend is first used.
pytestmark = pytest.mark.filterwarnings("ignore:triton-ascend is not installed")
PROTOTYPE = "REG_OP(Cached).INPUT(x, ALL()).OUTPUT(y, ALL()).ATTR(k, Float, 2.0).OP_END_FACTORY_REG(Cached)"
GLOBAL = {"factor": 3.0}


@dataclass(frozen=True)
class Version:
    """The operator as it is at one time: its schema, kernel and registration."""

    schema: str = "cached(Tensor x, float k=2.0) -> Tensor"
    kernel: Callable[..., torch.Tensor] = field(default=lambda x, k=2.0: x * k)
    shape: str | None = "x[n] -> y[n]"
    backward: Any = field(default=lambda ctx, grad: (grad * 3, None))
    fake: Callable[..., torch.Tensor] | None = None

    @contextlib.contextmanager
    def registered(self) -> Iterator[None]:
        ascend_graph.load_prototypes(PROTOTYPE)
        library = torch.library.Library("graph_caches", "DEF")
        library.define(self.schema)
        library.impl("cached", self.kernel, "CPU")
        library.impl("cached", self.kernel, "PrivateUse1")
        if self.fake is not None:
            torch.library.register_fake("graph_caches::cached", self.fake, lib=library)
        op = ascend_graph.register_op(
            "Cached", eager=torch.ops.graph_caches.cached, shape=self.shape, backward=self.backward
        )
        try:
            yield
        finally:
            op.unregister()
            library._destroy()
            torch._dynamo.reset()


def results(version: Version) -> tuple[list[float], list[float]]:
    """Compile a call with PyTorch's default backend; return its result and gradient."""
    with version.registered():
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = torch.compile(lambda x: torch.ops.graph_caches.cached(x))(x)
        y.sum().backward()
        assert x.grad is not None
        return y.tolist(), x.grad.tolist()


def scaled(factor: float) -> Callable[..., Any]:
    return lambda ctx, grad: (grad * factor, None)


def by_global(ctx: Any, grad: torch.Tensor) -> Any:
    return grad * GLOBAL["factor"], None


def tripled(x: torch.Tensor, k: float = 2.0) -> torch.Tensor:
    return torch.cat([x * k] * 3)


def doubled(x: torch.Tensor, k: float = 2.0) -> torch.Tensor:
    return torch.cat([x * k] * 2)


def parts(count: int) -> Callable[..., Any]:
    return lambda ctx, grad: (grad.reshape(count, -1).sum(0), None)


CHANGES = {
    "the code of a gradient": (Version(), Version(backward=lambda ctx, grad: (grad * 7, None))),
    "a closure variable of a gradient": (Version(backward=scaled(3)), Version(backward=scaled(7))),
    "a default of the schema": (
        Version(),
        Version(schema="cached(Tensor x, float k=5.0) -> Tensor", kernel=lambda x, k=5.0: x * k),
    ),
    "the relation": (
        Version(kernel=doubled, shape="x[n] -> y[2*n]", backward=parts(2)),
        Version(kernel=tripled, shape="x[n] -> y[3*n]", backward=parts(3)),
    ),
    "the author's fake function": (
        Version(kernel=doubled, shape=None, backward=parts(2), fake=lambda x, k=2.0: x.new_empty(2 * x.shape[0])),
        Version(kernel=tripled, shape=None, backward=parts(3), fake=lambda x, k=2.0: x.new_empty(3 * x.shape[0])),
    ),
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    counters.clear()


@pytest.mark.parametrize("change", CHANGES)
def test_a_kept_graph_is_of_the_operator_as_it_was(change: str) -> None:
    before, after = CHANGES[change]
    first, second = results(before), results(after)
    assert first != second
    again = results(before)
    assert again == first
    assert counters["aot_autograd"]["autograd_cache_hit"] == 1, "the operator of before has its graph still"
    with after.registered():
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = torch.ops.graph_caches.cached(x)
        y.sum().backward()
        assert second == (y.tolist(), x.grad.tolist())  # type: ignore[union-attr]


def test_a_global_that_a_gradient_reads_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert results(Version(backward=by_global))[1] == [3.0, 3.0]
    monkeypatch.setitem(GLOBAL, "factor", 7.0)
    assert results(Version(backward=by_global))[1] == [7.0, 7.0]


def test_graphs_without_registered_operators_keep_their_keys() -> None:
    def run() -> None:
        torch.compile(lambda x: torch.cumsum(x, 0))(torch.tensor([2.0, 1.0]))
        torch._dynamo.reset()

    with Version().registered():  # which loads what is PyTorch's own part of a key
        pass
    run()
    with Version().registered():
        run()
    assert counters["aot_autograd"]["autograd_cache_hit"] == 1


# --------------------------------------------------------------------------------------------- TorchAir's cache_compile


class Kept(torch.nn.Module):
    """Module whose compiled program TorchAir keeps in a directory."""

    def __init__(self, mode: str, directory: Path) -> None:
        super().__init__()
        config = torchair.CompilerConfig()
        config.mode = mode
        self.kept = torchair.inference.cache_compile(self.program, config=config, cache_dir=str(directory))

    def program(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.graph_caches.cached(x) + 1


def calculated(mode: str, directory: Path, version: Version) -> tuple[list[float], bool]:
    """Return the result of a kept program, and whether it was compiled for this call."""
    before = sorted((path, path.stat().st_mtime_ns) for path in directory.rglob("compiled_module"))
    with version.registered():
        result = Kept(mode, directory).kept(torch.tensor([1.0, 2.0]).npu()).tolist()
    return result, before != sorted((path, path.stat().st_mtime_ns) for path in directory.rglob("compiled_module"))


@pytest.mark.parametrize("mode", ["max-autotune", "reduce-overhead"])
def test_a_kept_program_is_compiled_again_for_a_changed_operator(mode: str, tmp_path: Path) -> None:
    schema = "cached(Tensor x, float k=5.0) -> Tensor"
    changed = Version(schema=schema, kernel=lambda x, k=5.0: torch.cat([x * k] * 2), shape="x[n] -> y[2*n]")
    host_kernel("Cached")(lambda x, *, k: x * k)
    try:
        assert calculated(mode, tmp_path, Version()) == ([3.0, 5.0], True)
        assert calculated(mode, tmp_path, Version()) == ([3.0, 5.0], False)
        registry._KERNELS.pop("Cached")
        host_kernel("Cached")(lambda x, *, k: torch.cat([x * k] * 2))
        assert calculated(mode, tmp_path, changed) == ([6.0, 11.0, 6.0, 11.0], True)
        assert calculated(mode, tmp_path, changed) == ([6.0, 11.0, 6.0, 11.0], False)
    finally:
        registry._KERNELS.pop("Cached")


# ------------------------------------------------------------------------------------------------------- fingerprints

SOURCE = """
import enum, functools, math, re
import torch
import torch.nn.functional as F

class Kind(enum.Enum):
    ONE = 1

class Rule:
    names = frozenset({"a", "b", "c", "d"})
    def __init__(self, factor):
        self.factor = factor
    def __call__(self, ctx, grad):
        return F.gelu(grad) * self.factor * again(SCALE, 3) * math.pi

def again(value, times):
    return value if times == 0 else again(value, times - 1)

SCALE = 2.0
PATTERN = re.compile("a+")
TABLE = {"weights": torch.arange(3.0), "kinds": [Kind.ONE, {"x", "y", "z"}], "dtype": torch.float16}
rule = Rule(SCALE)
@functools.wraps(torch.relu)
def wrapped(x):
    return x * 13

value = [
    wrapped, rule.__call__, rule, functools.partial(again, times=2), lambda x: x if x in {"p", "q"} else TABLE, PATTERN.match,
    torch.ops.aten.add.Tensor, torch.nn.Linear, max,
]
"""


def of_source(source: str, seed: int) -> str:
    program = (
        f"namespace = {{'__name__': 'source'}}\nexec({source!r}, namespace)\n"
        "from ascend_graph.registration.identity.fingerprint import fingerprint\nprint(fingerprint(namespace['value']))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": str(seed), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def made(source: str) -> Any:
    namespace: dict[str, Any] = {"__name__": "source"}
    exec(compile(source, "<string>", "exec", dont_inherit=True), namespace)
    return namespace["value"]


def test_another_process_has_the_same_fingerprint() -> None:
    assert of_source(SOURCE, seed=1) == fingerprint(made(SOURCE))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("times - 1", "times - 3"),
        ("SCALE = 2.0", "SCALE = 2"),
        ("arange(3.0)", "arange(4.0)"),
        ("arange(3.0)", "arange(3)"),
        ("F.gelu", "F.relu"),
        ("math.pi", "math.e"),
        ('"c", "d"', '"c", "e"'),
        ("torch.float16", "torch.bfloat16"),
        ("times=2", "times=3"),
        ('{"p", "q"}', '{"p", "r"}'),
        ('"a+"', '"a*"'),
        ("add.Tensor", "add.Scalar"),
        ("nn.Linear", "nn.Bilinear"),
        ("max,", "min,"),
        ("ONE = 1", "ONE = 2"),
        ("x * 13", "x * 17"),
    ],
)
def test_a_change_is_another_fingerprint(old: str, new: str) -> None:
    assert old in SOURCE
    assert fingerprint(made(SOURCE)) == fingerprint(made(SOURCE))
    assert fingerprint(made(SOURCE)) != fingerprint(made(SOURCE.replace(old, new)))


def test_what_has_no_value_has_no_fingerprint() -> None:
    with pytest.raises(NoFingerprintError):
        fingerprint([(value for value in range(3))])
