"""Calls that opcheck draws: lists of numbers, absent inputs that a relation asks for; and its order of graphs."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import ascend_graph
from ascend_graph.checks.opcheck import opcheck
from ascend_graph.checks.report import CheckError

pytestmark = pytest.mark.filterwarnings("ignore")
Register = Callable[..., Any]


@pytest.fixture
def register() -> Iterator[Register]:
    """Define an operator of these arguments with a Python kernel, and register it."""
    with torch.library._scoped_library("drawn_lists", "DEF") as library:
        made: list[Any] = []

        def define(arguments: str, kernel: Callable[..., Any], shape: str) -> Any:
            library.define(f"op({arguments}) -> Tensor")
            library.impl("op", kernel, "PrivateUse1")
            made.append(ascend_graph.register_kernel(eager=torch.ops.drawn_lists.op, shape=shape))
            return made[-1]

        yield define
        for op in made:
            op.unregister()


def pad(x: torch.Tensor, k: Any = (1, 1)) -> torch.Tensor:
    return torch.nn.functional.pad(x, list(k))


@pytest.mark.parametrize("arguments", ["Tensor x, int[2] k", "Tensor x, int[] k", "Tensor x, int[2] k=1"])
def test_lists_have_the_elements_that_the_type_or_the_relation_asks_for(register: Register, arguments: str) -> None:
    report = opcheck(register(arguments, pad, "x[*s, d] -> y[*s, d + k[0] + k[1]]"))
    assert report.ok


def test_lists_have_elements_that_differ(register: Register) -> None:
    op = register("Tensor x, int[2] k=1", pad, "x[*s, d] -> y[*s, d + 2 * k[0]]")
    with pytest.raises(CheckError, match="meta: the meta function says shape of return 0"):
        opcheck(op)


def test_a_kernel_without_the_schemas_default_fails(register: Register) -> None:
    """PyTorch leaves the argument out of calls that give the default."""

    def kernel(x: torch.Tensor, k: Any) -> torch.Tensor:
        return pad(x, k)

    op = register("Tensor x, int[2] k=1", kernel, "x[*s, d] -> y[*s, d + k[0] + k[1]]")
    with pytest.raises(
        CheckError, match=r"runs: .*kernel\(\) missing 1 required .*'k'; .* give the kernel's parameter"
    ):
        opcheck(op)


@pytest.mark.parametrize(
    "condition", ["w is None", "w is None or v is None, w is not None or v is not None", "w is None, v is not None"]
)
def test_inputs_are_absent_where_the_relation_asks_for_it(register: Register, condition: str) -> None:
    report = opcheck(
        register(
            "Tensor x, Tensor? w=None, Tensor? v=None",
            lambda x, w=None, v=None: x * 2,
            f"x[*s], w[*s], v[*s] -> y[*s] where {condition}",
        )
    )
    assert report.ok


def test_npugraph_ex_is_checked_where_the_program_compiled_for_it_first(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent("""
        import torch, torch_npu, ascend_graph
        library = torch.library.Library("first", "DEF")
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "PrivateUse1")
        torch.compile(lambda x: x + 1, backend="npugraph_ex")(torch.ones(2).npu())
        op = ascend_graph.register_kernel(eager=torch.ops.first.twice, shape="x[*s] -> y[*s]")
        print(ascend_graph.opcheck(op).ok)
        """)
    )
    command = [sys.executable, "-m", "ascend_graph.host", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["True"], done.stderr
