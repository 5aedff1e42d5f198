"""Kernels carry the names of the wheel's prototypes: a graph's node finds its inputs and attrs by them."""

from __future__ import annotations

import inspect
import re

import pytest
from torchair._ge_concrete_graph import auto_generated_ge_raw_ops as raw_ops

from ascend_graph.environment import HostRuntimeError
from ascend_graph.host.kernels import host_kernel, host_kernels
from ascend_graph.host.runtime.engine import documented_prototype


def test_inputs_and_attrs_are_named_as_in_the_prototypes() -> None:
    """Every input, in the prototype's order, and every attr. A kernel may have what newer prototypes have behind;
    what it does not support it takes and refuses by name."""
    found, wrong = 0, []
    for op_type, kernel in host_kernels().items():
        prototype = documented_prototype(op_type)
        if prototype is None:
            continue
        found += 1
        names = tuple(p.name for p in prototype.inputs)
        if all(naming[: len(names)] != names for naming in (kernel.inputs, *kernel.other_inputs)):
            wrong.append(f"{op_type}: inputs {kernel.inputs}, in the prototype {names}")
        lacking = _written_attrs(op_type) - kernel.attrs - kernel.ignored_attrs
        if lacking and not kernel.takes_any_attr:
            wrong.append(f"{op_type}: no attr {sorted(lacking)}")
    assert wrong == []
    assert found > 350


def _written_attrs(op_type: str) -> set[str]:
    """The attrs of a node, by the names that the wheel's function writes: a few of its docstrings have others."""
    function = getattr(raw_ops, op_type, None) or getattr(raw_ops, f"_{op_type}")
    return set(re.findall(r'op\.attr\["([a-zA-Z]\w*)"\]', inspect.getsource(function)))


def test_a_number_among_the_inputs_of_a_kernel_is_refused() -> None:
    """An input that is absent is None, so that its default would never be what the author wrote."""
    said = r"NormUp: eps=1e-05 stands among the inputs .*: \(x, gamma, \*, eps=1e-05\)"
    with pytest.raises(HostRuntimeError, match=said):
        host_kernel("NormUp")(lambda x, gamma, eps=1e-5: x)
    assert "NormUp" not in host_kernels()
