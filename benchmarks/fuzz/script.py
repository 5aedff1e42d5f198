"""Standalone script of a program: it prints its results on the CPU and in one mode, side by side."""

from __future__ import annotations

import torch

from benchmarks.fuzz.deploy import NAMESPACE, kernel_module
from benchmarks.fuzz.operators import FuzzOperator, prototype, relation, schema
from benchmarks.fuzz.programs import FuzzProgram, make_arguments

_COMPILED = {
    "eager": "{f}",
    "ge": "torch.compile({f}, backend=backend, dynamic=False, fullgraph=True)",
    "ge_dynamic": "torch.compile({f}, backend=backend, dynamic=DYNAMIC, fullgraph=True)",
    "npugraph_ex": "torch.compile({f}, backend=backend, dynamic=False, fullgraph=True, options=options)",
    "npugraph_ex_dynamic": "torch.compile({f}, backend=backend, dynamic=DYNAMIC, fullgraph=True, options=options)",
    "jvp": "lambda *xs: torch.func.jvp({f}, xs, tuple(torch.ones_like(x) for x in xs))",
    "vmap": "torch.func.vmap({f})",
}


def _tensor(t: torch.Tensor, name: str) -> str:
    """Return the lines that make a tensor with its values, strides and offset."""
    if t.is_neg():
        return f"{_tensor(torch._neg_view(t), name)}\n    {name} = torch._neg_view({name}.detach())" + (
            ".requires_grad_()" if t.requires_grad else ""
        )
    text = f"{name} = torch.tensor({t.detach().tolist()!r}, dtype={t.dtype})"
    if t.numel() == 0:
        text = f"{name} = torch.zeros({tuple(t.shape)}, dtype={t.dtype})"
    if not t.is_contiguous() or t.storage_offset():
        size = t.untyped_storage().nbytes() // t.element_size()
        text += f"\n    {name} = torch.ones({size}, dtype={t.dtype}).as_strided({tuple(t.shape)}, {t.stride()}, {t.storage_offset()}).copy_({name})"
    return text + (".requires_grad_()" if t.requires_grad else "")


def _operators(ops: tuple[FuzzOperator, ...]) -> str:
    """Return the lines that make the operators: kernels, package, registration, and the reference for the CPU."""
    text = f"KERNELS = {kernel_module(ops)!r}\nHEADER = {chr(10).join(map(prototype, ops))!r}\n"
    text += (
        'directory = Path(tempfile.mkdtemp())\n(directory / "kernels.py").write_text(KERNELS)\n(directory / "op_proto.h").write_text(HEADER)\n'
        "sys.path.insert(0, str(directory))\nimport kernels\n"
        f"build_operator_package(directory / 'opp', directory / 'op_proto.h', {{{', '.join(f'{op.name!r}: kernels.{op.snake}' for op in ops)}}})\n"
        'os.environ["ASCEND_CUSTOM_OPP_PATH"] = str(directory / "opp")\n'
    )
    for number, op in enumerate(ops):
        extra = f", batch={op.batch!r}" if op.batch is not None and op.route != "aclnn" else ""
        if op.route == "own":
            text += f"op{number} = ascend_graph.register_op({op.name!r}, shape={relation(op)!r}{extra}).overload\n"
        elif op.route == "aclnn":
            text += 'ascend_graph.load_aclnn(directory / "opp/op_api/include")\n'
            text += f"op{number} = ascend_graph.register_aclnn('aclnn{op.name}', schema={schema(op)!r}, op_type={op.name!r}, shape={relation(op)!r}).overload\n"
        else:
            text += (
                f"# The author's schema: {schema(op)}; see benchmarks/fuzz/deploy.py for the kernel ({NAMESPACE}).\n"
            )
    return text


def script(program: FuzzProgram, mode: str) -> str:
    """Return a script that shows the difference; run it with ``python -m ascend_graph.host FILE``."""
    names = ", ".join(program.names())
    lines = [
        '"""Run on the host runtime: python -m ascend_graph.host FILE."""',
        "import os, sys, tempfile",
        "from pathlib import Path",
        "import torch",
        "import torch.nn.functional as F",
        "from torch.utils.checkpoint import checkpoint",
    ]
    lines += [
        "import torch_npu, torchair",
        "import ascend_graph",
        "from ascend_graph.host import build_operator_package",
        "from benchmarks.fuzz.modes import backend_of",
        "from benchmarks.fuzz.settings import Holder, Setting",
        "from benchmarks.operators.trees import Mover",
        "",
    ]
    if program.operators:
        lines.append(_operators(program.operators))
    lines += [program.source(), "", ""]
    if program.checkpoint:
        lines.append("inner = program\nprogram = lambda *args: checkpoint(inner, *args, use_reentrant=False)")
    for call in range(len(program.sizes)):
        arguments = make_arguments(program, call)
        lines.append(f"def arguments_{call}():")
        alias = {i.name: i for i in program.inputs if i.alias}
        for name, value in zip(program.names(), arguments, strict=True):
            if name in alias:
                of, half = alias[name].alias, alias[name].layout == "offset"
                lines.append(f"    {name} = {of}[{of}.shape[0] // 2 :]" if half else f"    {name} = {of}.view_as({of})")
                continue
            lines.append(f"    {_tensor(value, name) if isinstance(value, torch.Tensor) else f'{name} = {value}'}")
        lines += [f"    return [{names}]", ""]
    lines.append(f"holder = Holder({program.setting!r}, {program.names()!r})")
    if mode in _COMPILED:
        lines.append(f"backend = backend_of({mode.removesuffix('_dynamic')!r}, holder.setting)")
        lines.append("options = dict(holder.setting.captures)")
    compiled = (
        _COMPILED.get(mode, "{f}").format(f="f").replace("DYNAMIC", str(None if program.setting.automatic else True))
    )
    lines.append(f"run = holder.bound(program, lambda f: {compiled})")
    for call in range(len(program.sizes)):
        if not program.operators:
            lines.append(f'print("CPU:", program(*arguments_{call}()))')
        lines.append("with holder.setting.mode():")
        lines.append(f"    arguments = holder.keep(Mover('npu')(arguments_{call}()))  # with strides and shared memory")
        lines.append(f'    print("{mode}:", run(*arguments), arguments)')
    return "\n".join(lines) + "\n"
