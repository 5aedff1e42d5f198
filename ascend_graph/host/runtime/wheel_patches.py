"""Patches of torch_npu's and TorchAir's Python code."""

from __future__ import annotations

import atexit

from ascend_graph.host.runtime.shutdown import settle
from ascend_graph.host.runtime.signal_handlers import keep_handlers
from ascend_graph.host.runtime.threads import guard_generated_code, guard_graphs
from ascend_graph.host.triton.hook import install as install_triton
from ascend_graph.import_patches import Patch, patch_modules

_PATCHES: dict[str, Patch] = {
    "torchair._ge_concrete_graph.fx2ge_converter": guard_graphs,
    "torchair.npu_fx_compiler": guard_generated_code,
    "torchair.core._backend": keep_handlers,
    "torch_npu.dynamo.npugraph_ex": keep_handlers,  # "npugraph_ex" is a stand-in that imports it
}


def install() -> None:
    """Patch the wheels, and register ``settle`` to run at exit. A second call does nothing."""
    install_triton()
    if patch_modules(_PATCHES):
        atexit.register(settle)
