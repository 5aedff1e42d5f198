"""The same source executed twice is one registration; otherwise the message says what differs."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import ascend_graph
from ascend_graph.registration.identity.sameness import difference
from ascend_graph.registration.request import RegistrationError

PROTOTYPE = "REG_OP(SameSource).INPUT(x, ALL()).OUTPUT(y, ALL()).OP_END_FACTORY_REG(SameSource)"
MODULE = f'''
import functools
import torch
import ascend_graph

ascend_graph.load_prototypes("{PROTOTYPE}")
SCALE = 2.0
TABLE = {{"weights": torch.ones(3), "names": ["a", ("b", frozenset({{1}}))]}}

class Rule:
    """A class, of which there is another one each time."""
    def __init__(self, factor):
        self.factor = factor
    def __call__(self, ctx, grad):
        return grad * self.factor * again(SCALE, 3)

def again(value, times):
    return value if times == 0 else again(value, times - 1)

def meta(x, *, rule=Rule(1)):
    return torch.empty_like(x) if TABLE else None

RULE = Rule(SCALE)
op = ascend_graph.register_op(
    "SameSource",
    eager=torch.ops.same_source.twice,
    meta=functools.partial(meta),
    backward=RULE.__call__,
    forward=lambda ctx, tangent: [tangent * scale for scale in (SCALE,)][0],
)
'''


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    # Byte code is taken for that of another text of equal size, written within the same second.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    library = torch.library.Library("same_source", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CPU")
    file = tmp_path / "registrations_of_same_source.py"
    file.write_text(MODULE)
    sys.path.insert(0, str(tmp_path))
    yield file
    sys.path.remove(str(tmp_path))
    sys.modules.pop(file.stem, None)
    for registered in ascend_graph.registered_ops():
        if registered.op_type == "SameSource":
            registered.unregister()
    library._destroy()


def load(file: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_module_is_reloaded(source: Path) -> None:
    module = importlib.import_module(source.stem)
    first = module.op
    assert importlib.reload(module).op is first
    x = torch.ones(2, requires_grad=True)
    first(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [4, 4]


def test_a_module_is_imported_under_two_names(source: Path) -> None:
    assert load(source, "once").op is load(source, "again").op


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("SCALE = 2.0", "SCALE = 3.0", r"backward: registered .*; its global SCALE is 3.0, and was 2.0"),
        (
            "tangent * scale",
            "tangent - scale",
            r"forward: registered .*; its code is that of line \d+, and was that of line \d+",
        ),
        (
            "torch.ones(3)",
            "torch.zeros(3)",
            r"meta: registered .*its global TABLE\['weights'\] is tensor\(\[0., 0., 0.\]\), and was",
        ),
        (
            "frozenset({1})",
            "frozenset({2})",
            r"its global TABLE\['names'\]\[1\]\[1\] is frozenset\(\{2\}\), and was frozenset\(\{1\}\)",
        ),
        ("times - 1)", "times - 2)", r"backward: registered .*again code is that of line"),
        ("rule=Rule(1)", "rule=Rule(2)", r"meta: registered .*its defaults\['rule'\]\['factor'\] is 2, and was 1"),
    ],
)
def test_what_differs_is_said(source: Path, old: str, new: str, match: str) -> None:
    load(source, "once")
    assert old in MODULE
    source.write_text(MODULE.replace(old, new))
    with pytest.raises(RegistrationError, match=match):
        load(source, "again")


# ------------------------------------------------------------------------------------------------------------- by kinds


def cell(text: str, **values: Any) -> Any:
    """What a cell of a notebook makes of ``made``."""
    scope: dict[str, Any] = {"np": np, "torch": torch, "functools": functools, "dataclasses": dataclasses, **values}
    exec(text, scope)
    return scope["made"]


SAME = [
    "made = lambda x: x + 1",
    "def made(x, *, y=(1, [2])):\n    return lambda: (x, y)",
    "def made(n):\n    return made(n - 1) if n else 0",
    "def even(n): return n == 0 or odd(n - 1)\ndef odd(n): return n != 0 and even(n - 1)\nmade = even",
    "array = np.arange(4)\ndef made(): return array",
    "def outer(value): return lambda: value\nmade = outer(torch.ones(2))",
    "def outer(value): return lambda: value\nmade = outer(float('nan'))",
    "class C:\n    __slots__ = ('a',)\n    def __init__(self): self.a = [1]\nmade = C().__init__",
    "@dataclasses.dataclass(frozen=True)\nclass C:\n    a: int = 1\n    b: object = None\nmade = C(2, lambda: 3)",
    (
        "class C:\n    def f(self): return C\n    @property\n    def p(self): return 1\n    @staticmethod\n"
        "    def s(): return 2\nmade = C"
    ),
    "class C: pass\nmade = C()\nmade.itself = made",
    "@functools.lru_cache\ndef made(x): return x",
    (
        "def decorate(f):\n    @functools.wraps(f)\n    def g(*a): return f(*a)\n    return g\n@decorate\n"
        "def made(x): return x"
    ),
    "made = functools.partial(lambda a, b: a + b, 1, b=[2])",
    "made = []\nmade.append(made)",
    "def outer():\n    def f(): return later\n    if False: later = 1\n    return f\nmade = outer()",
    "made = {'a': np.float32(1.5), 'b': {1, 2}, 'c': slice(1, 2), 'd': torch.float32}",
]


@pytest.mark.parametrize("text", SAME)
def test_the_same_text_makes_the_same(text: str) -> None:
    assert difference(cell(text), cell(f"\n\n{text}")) == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("made = lambda: 1", "made = lambda: 1.0"),
        ("made = lambda: 1", "made = lambda: True"),
        ("made = lambda: 0.0", "made = lambda: -0.0"),
        ("made = lambda x: x.a", "made = lambda x: x.b"),
        ("made = lambda x=1: x", "made = lambda x=2: x"),
        ("made = lambda *, x=1: x", "made = lambda *, x=2: x"),
        ("made = lambda: (lambda: 1)", "made = lambda: (lambda: 2)"),
        ("k = 1\nmade = lambda: (lambda: k)", "k = 2\nmade = lambda: (lambda: k)"),
        ("made = lambda: k", "k = 2\nmade = lambda: k"),
        ("def f(k): return lambda: k\nmade = f(np.zeros(2))", "def f(k): return lambda: k\nmade = f(np.ones(2))"),
        ("made = functools.partial(print, 1)", "made = functools.partial(print, 2)"),
        ("made = len", "made = print"),
        ("class C:\n    a = 1\nmade = C()", "class C:\n    a = 2\nmade = C()"),
        ("class C: pass\nmade = C", "class D: pass\nmade = D"),
        ("made = [1]", "made = (1,)"),
        ("made = torch.ones(2)", "made = torch.ones(2, dtype=torch.int32)"),
        ("made = [object()]", "made = [object()]"),
        ("made = lambda: 1\nmade.k = 1", "made = lambda: 1\nmade.k = 2"),
    ],
)
def test_another_text_makes_another(old: str, new: str) -> None:
    assert difference(cell(old), cell(new))


def test_what_is_nested_deeply_is_compared_so_far_and_called_different() -> None:
    old: list[Any] = []
    new: list[Any] = []
    for _ in range(5000):
        old, new = [old], [new]
    assert "nested too deeply" in difference(old, new)


def test_comparisons_that_raise_or_give_arrays_say_that_values_differ() -> None:
    class Raises:
        def __eq__(self, other: object) -> bool:
            raise ValueError("no")

        __hash__ = None  # type: ignore[assignment]

    assert difference(Raises(), Raises())
