"""Meta functions that decorators of a repository's own register are those of the operators."""

from __future__ import annotations

import pytest

from ascend_graph.adoption import AdoptionReport

from .conftest import Adopt, decision

CPP = """
at::Tensor f(const at::Tensor &x)
{
    at::Tensor y = at::empty_like(x); EXEC_NPU_CMD(aclnnF, x, y); return y;
}
TORCH_LIBRARY(mine, m) { m.def("f(Tensor x) -> Tensor"); m.impl("f", torch::kPrivateUse1, &f); }
"""
RETURNED = """
import torch

SPACE = "mine"

def fake_of(name):
    return torch.library.register_fake(f"{SPACE}::{name}")
"""
#: The decorator calls another function, which an older PyTorch has otherwise.
CHAINED = """
import torch
from torch.library import Library

SPACE = "mine"
if torch.__version__.startswith("2.1"):
    held = Library(SPACE, "IMPL")

    def registered(name):
        def decorate(function):
            held.impl(name, function, "Meta")
            return function

        return decorate
else:
    try:
        from torch.library import register_fake as own
    except ImportError:
        from torch.library import impl_abstract as own

    def registered(name):
        return own(name)

def fake_of(name):
    if not torch.npu.is_available():
        return lambda function: function
    return registered(f"{SPACE}::{name}")
"""
INNER = """
import torch

def fake_of(name, space="mine"):
    def decorate(function):
        torch.library.register_fake(space + "::" + name)(function)
        return function

    return decorate
"""
OF_ITS_OWN = INNER.replace("(function)\n        return", "(lambda x: x.new_empty((function(x),)))\n        return")
USES = {
    "function": "from .making import fake_of\n\n@fake_of('f')\n",
    "module": "from . import making\n\n@making.fake_of('f')\n",
    "alias": "from mine import making as made\n\n@made.fake_of(name='f')\n",
}
META = "def meta(x):\n    return x.new_empty((x.shape[0], 1))\n"


def report_of(adopted: Adopt, making: str, use: str) -> AdoptionReport:
    files = {"ops.cpp": CPP, "mine/__init__.py": "", "mine/making.py": making, "mine/fakes.py": USES[use] + META}
    return adopted(files)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("making", [RETURNED, CHAINED, INNER])
def test_a_meta_function_is_found_that_an_own_decorator_registers(making: str, use: str, adopted: Adopt) -> None:
    report = report_of(adopted, making, use)
    assert report.diagnostics == ()
    one = decision(report, "mine::f")
    assert one.override
    assert any("mine/fakes.py:4 says otherwise" in line for line in one.evidence)


def test_a_decorator_with_a_meta_function_of_its_own_is_not_the_decorated_one(adopted: Adopt) -> None:
    one = decision(report_of(adopted, OF_ITS_OWN, "function"), "mine::f")
    assert one.override
    assert not any("says otherwise" in line for line in one.evidence)


def test_a_decorator_that_registers_two_operators_is_not_followed(adopted: Adopt) -> None:
    making = RETURNED + "\n\ndef fake_of(name):\n    return torch.library.register_fake('other::' + name)\n"
    assert not decision(report_of(adopted, making, "function"), "mine::f").override
