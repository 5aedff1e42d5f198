"""Values of Python kernels: what another name, a nested function or a deletion changes is not followed."""

from __future__ import annotations

import pytest

from ascend_graph.adoption import Decision

from .conftest import Adopt, decision


def adopt_kernel(adopted: Adopt, body: str) -> Decision:
    """Adopt a repository of one operator ``mine::f`` with its kernel in Python."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    head = 'import torch\n\n@torch.library.custom_op("mine::f", mutates_args=())\n'
    return decision(adopted({"ops.py": f"{head}def f(x: torch.Tensor, n: int) -> torch.Tensor:\n{lines}\n"}), "mine::f")


@pytest.mark.parametrize(
    "body",
    [
        "s = list(x.shape)\nt = s\nt.append(3)\nreturn x.new_empty(s)",
        "s = list(x.shape)\nt = s\nt[0] = 3\nreturn x.new_empty(s)",
        "s = list(x.shape)\ndel s[0]\nreturn x.new_empty(s)",
        "m = 3\ndef change():\n    nonlocal m\n    m = 5\nchange()\nreturn x.new_empty((m,))",
        "a, *b = x.shape\nreturn x.new_empty(b)",
        "return x.new_empty((x.shape[0] or 4,))",
        "return x.new_empty((n or 4,))",
        "return x.new_empty((n and 4,))",
        "y = x.new_empty((2,))\nz = y\nz.resize_(5)\nreturn y",
    ],
)
def test_what_is_changed_otherwise_is_left_open(adopted: Adopt, body: str) -> None:
    one = adopt_kernel(adopted, body)
    assert (one.relation, one.meta) == (None, ())


@pytest.mark.parametrize(
    ("body", "relation"),
    [
        ("s = list(x.shape)\ns.append(3)\nreturn x.new_empty(s)", "x[*s] -> y[*s, 3]: x"),
        ("s = list(x.shape)\nt = s\nreturn x.new_empty(t)", "x[*s] -> y[*s]: x"),
        (
            "m = 2 if x.dim() == 2 or n > 3 else 5\nreturn x.new_empty((m,))",
            "x -> y[(2 if (rank(x) == 2) or (n > 3) else 5)]: x",
        ),
    ],
)
def test_what_is_changed_under_its_own_name_is_followed(adopted: Adopt, body: str, relation: str) -> None:
    assert adopt_kernel(adopted, body).relation == relation
