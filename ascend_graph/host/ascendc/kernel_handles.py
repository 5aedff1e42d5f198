"""Kernels that a program finds by their names while it runs: their source registers them with the runtime."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ascend_graph.sources.kernels import Kernel

_BY_HANDLE = re.compile(r"\baclrt(?:GetFuncBySymbol|LaunchKernelWithArgsArray)\b")


def finds_kernels_by_symbol(text: str) -> bool:
    """Return whether a source looks for its kernels' handles while it runs."""
    return _BY_HANDLE.search(text) is not None


def registrations(kernels: Sequence[Kernel]) -> str:
    """Return C++ that registers kernels when their code is loaded, to be placed after them in their source.

    A function of each reads the arguments from bytes, each at a multiple of 8.
    """
    if not kernels:
        return ""
    parts = [
        'extern "C" void ascendgraphRegisterKernel(const char*, const void*, uint32_t (*)(uint32_t, void*, const char*), '
        "const uint32_t*, uint32_t) __attribute__((weak));\n"
    ]
    for number, kernel in enumerate(kernels):
        types = [parameter.type.replace("const ", "").rstrip("& ") for parameter in kernel.parameters]
        sizes = ", ".join(f"sizeof({kind})" for kind in types) or "0"
        offsets = [
            " + ".join([f"(sizeof({kind}) + 7) / 8 * 8" for kind in types[:index]] or ["0"])
            for index in range(len(types))
        ]
        values = "".join(
            f", ::ascendgraph_argument<{kind}>(bytes + {offset})" for kind, offset in zip(types, offsets, strict=True)
        )
        qualified = f"{kernel.namespace}::{kernel.name}" if kernel.namespace else f"::{kernel.name}"
        # The C library may have a function of the kernel's name: which of the two is meant, its parameters say.
        pointer = f"static_cast<void (*)({', '.join(parameter.type for parameter in kernel.parameters)})>(&{qualified})"
        using = f"using namespace {kernel.namespace}; " if kernel.namespace else ""
        parts.append(
            f"static const bool ascendgraph_registered_{number} = [] {{ {using}static const uint32_t sizes[] = {{{sizes}}}; "
            f'if (ascendgraphRegisterKernel != nullptr) ascendgraphRegisterKernel("{kernel.name}", '
            f"reinterpret_cast<const void*>({pointer}), [](uint32_t blocks, void* stream, const char* bytes) -> uint32_t {{ "
            f'(void)bytes; return ::ascendc_host::launch("{kernel.name}", blocks, stream, [](const auto&... a_) {{ {qualified}(a_...); }}{values}); }}, '
            f"sizes, {len(types)}); return true; }}();\n"
        )
    argument = (
        "template <typename T> static T ascendgraph_argument(const char* bytes) "
        "{ T value; __builtin_memcpy(&value, bytes, sizeof(value)); return value; }\n"
    )
    return argument + "".join(parts)
