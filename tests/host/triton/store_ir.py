"""Write the IR of the kernels in ``kernels.py``, as the wheel compiles them: python tests/host/triton/store_ir.py."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
STORED = HERE / "ir"

#: Types of the arguments of each kernel, and its constants.
KERNELS: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "vector_add": ({"x": "*bf16", "y": "*bf16", "z": "*bf16", "n": "i32"}, {"block": 64}),
    "row_softmax": ({"x": "*fp32", "y": "*fp32", "stride": "i32", "columns": "i32"}, {"block": 64}),
    "causal_attention": (
        {"q": "*fp16", "k": "*fp16", "v": "*fp16", "out": "*fp16", "length": "i32", "scale": "fp32"},
        {"block": 16, "width": 32},
    ),
    "largest_and_where": ({"x": "*fp32", "values": "*fp32", "places": "*i32"}, {"columns": 8}),
    "collatz": ({"x": "*i32", "steps": "*i32", "n": "i32"}, {}),
    "count_up": ({"counter": "*i32", "tickets": "*i32"}, {}),
    "count_followers": ({"counts": "*i32"}, {}),
    "exchange": ({"arrived": "*i32", "x": "*i32", "out": "*i32"}, {}),
}


def compiled(name: str) -> str:
    """Return a kernel's IR in the generic form, with the files of its lines by their names alone."""
    from triton._C.libtriton import ir
    from triton.backends.ascend import compiler, utils
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import ASTSource

    from ascend_graph.host.triton.driver import generic_form

    sys.path.insert(0, str(HERE))
    kernel = getattr(importlib.import_module("kernels"), name)
    backend = compiler.AscendBackend(GPUTarget("npu", "Ascend910B1", 0))
    options = backend.parse_options({})
    signature, constants = KERNELS[name]
    context = ir.context()
    ir.load_dialects(context)
    source = ASTSource(kernel, signature, constants)
    module = source.make_ir(options, backend.get_codegen_implementation(), {}, context)
    text = generic_form(str(compiler.make_ttir(module, {}, options)), utils._get_triton_adapter_opt_path())
    text = re.sub(r'loc\("[^"]*\.mlir"', 'loc("kernel.mlir"', text)
    return re.sub(r'"[^"\n]*/(kernels|standard|core|math)\.py"', r'"\1.py"', text)


if __name__ == "__main__":
    for each in KERNELS:
        (STORED / f"{each}.mlir").write_text(compiled(each))
