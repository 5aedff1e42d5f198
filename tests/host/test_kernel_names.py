"""Kernels carry the names of the wheel's prototypes: a graph's node finds its inputs and attrs by them."""

from __future__ import annotations

import importlib
import inspect
import warnings

from ascend_graph.host.ops import host_kernels
from ascend_graph.prototypes import OpPrototype, parse_text

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch_npu  # noqa: F401 - torchair can only be imported after it

    raw_ops = importlib.import_module("torchair._ge_concrete_graph.auto_generated_ge_raw_ops")


def prototype_of(op_type: str) -> OpPrototype | None:
    text = inspect.unwrap(getattr(raw_ops, op_type, object)).__doc__ or ""
    if "REG_OP" not in text:
        return None
    found = parse_text(f"{text[text.index('REG_OP') :]}\n.OP_END_FACTORY_REG({op_type})").prototypes
    return found[0] if found else None  # of some the text is damaged


def test_inputs_and_attrs_are_named_as_in_the_prototypes() -> None:
    found, wrong = 0, []
    for kernel in host_kernels().values():
        prototype = prototype_of(kernel.op_type)
        if prototype is None:
            continue
        found += 1
        names = tuple(p.name for p in prototype.inputs)
        # A kernel may have what newer prototypes have behind, or leave out what it refuses.
        common = min(len(names), len(kernel.inputs))
        if names[:common] != kernel.inputs[:common] and names not in kernel.other_inputs:
            wrong.append(f"{kernel.op_type}: inputs {kernel.inputs}, in the prototype {names}")
        lacking = {attr.name for attr in prototype.attrs} - kernel.attrs - kernel.ignored_attrs
        if lacking and not kernel.takes_any_attr:
            wrong.append(f"{kernel.op_type}: no attr {sorted(lacking)}")
    assert wrong == []
    assert found > 350
