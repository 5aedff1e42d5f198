"""Kernel sources as C++: launches ``kernel<<<blocks, l2ctrl, stream>>>(…)`` and kernels marked ``__global__``.

Works on preprocessed text, so includes and macros have had their say, and keeps every line on its line.
"""

from __future__ import annotations

import re

from ascend_graph.errors import AscendGraphError
from ascend_graph.sources.kernels import GLOBAL_MARK, LITERAL, Kernel, Parameter, matching, skip_attributes

CORE_MARKS = {
    "__vector__": "__ascendc_aiv_only__",
    "__cube__": "__ascendc_aic_only__",
    "__mix__(...)": "__ascendc_mix__(__VA_ARGS__)",
}
"""The qualifiers that say which cores a kernel runs on, and what they are defined to while a source is preprocessed."""

THREAD_MARKS = {
    "__simt_vf__": "__ascendc_threads__",
    "__simt_callee__": "__ascendc_threads__",
    "__ubuf__": "__ascendc_ubuf__",
    "__local_mem__": "__ascendc_ubuf__",
}
"""The qualifiers of functions of threads, and of the memory that these share, likewise."""

_CORES = re.compile(
    r"\b__ascendc_(?P<only>aiv_only|aic_only)__|\b__ascendc_mix__\(\s*(?P<aic>\d)\s*,\s*(?P<aiv>\d)\s*\)"
)


class KernelSourceError(AscendGraphError):
    """A kernel source has a launch or a kernel that cannot be understood."""


_LAUNCH = re.compile(LITERAL + r"|(?P<launch><<<)")


def _line(text: str, position: int) -> str:
    """``file:line`` of a position in preprocessed text, by the last line marker before it."""
    marker = None
    for found in re.finditer(r'^# (\d+) "([^"\n]*)".*$', text[:position], re.MULTILINE):
        marker = found
    if marker is None:
        return f"line {text.count(chr(10), 0, position) + 1}"
    return f"{marker[2]}:{int(marker[1]) + text.count(chr(10), marker.end(), position) - 1}"


def _callee_start(text: str, end: int) -> int:
    """Where the expression that names the launched kernel starts; ``end`` is just behind it."""
    position = end
    while True:
        position = len(text[:position].rstrip())
        if text[position - 1 : position] == ">":  # template arguments, back to their "<"
            depth = parentheses = 0
            while position > 0:
                position -= 1
                parentheses += {")": 1, "(": -1}.get(text[position], 0)
                depth += {">": 1, "<": -1}.get(text[position], 0) if parentheses == 0 else 0
                if depth == 0 and parentheses == 0:
                    break
            position = len(text[:position].rstrip())
        name = re.compile(r"\w+$").search(text[max(0, position - 256) : position])
        if name is None:
            return end
        start = position - len(name[0])
        before = (
            text[:start].rstrip() if text[max(0, start - 1) : start].isspace() else text[max(0, start - 32) : start]
        )
        if name[0] != "template" and before.endswith("template"):
            start = text.rindex("template", 0, start)
            before = text[max(0, start - 32) : start].rstrip()
        if not before.endswith("::"):
            return start
        position = text.rindex("::", 0, start)
        if not re.search(r"[\w>]$", text[max(0, position - 32) : position]):
            return position  # a name from the global namespace


def rewrite_launches(text: str, *, untyped: bool = False) -> str:
    """Every ``kernel<<<…>>>`` of ``text`` as a call of ``ascendc_host::chevrons``.

    ``untyped`` says that launches go by functions that take ``void*`` for every pointer, as those of ``ascendc_library()`` do.

    Raises KernelSourceError for a launch without a kernel or without its ``>>>``.

    >>> rewrite_launches("add<half><<<8, nullptr, s>>>(x, y);")
    '::ascendc_host::chevrons("add<half>", [](const auto&... a_) { add<half>(a_...); }, 8, nullptr, s)(x, y);'
    """
    parts: list[str] = []
    done = 0
    values = "::ascendc_host::pointer(a_)..." if untyped else "a_..."
    for found in _LAUNCH.finditer(text):
        if not found["launch"] or found.start() < done:
            continue
        start = _callee_start(text, found.start())
        callee = text[start : found.start()]
        end = matching(text, found.end(), ">>>")
        if not callee.strip():
            raise KernelSourceError(f"{_line(text, found.start())}: '<<<' without the name of a kernel before it")
        if end < 0:
            raise KernelSourceError(f"{_line(text, found.start())}: launch of {callee.strip()} without its '>>>'")
        name = " ".join(callee.split())
        configuration = text[found.end() : end]
        parts.append(text[done:start] + "\n" * callee.count("\n"))
        parts.append(
            f'::ascendc_host::chevrons("{name}", [](const auto&... a_) {{ {callee.strip()}({values}); }}, {configuration})'
        )
        done = end + len(">>>")
    parts.append(text[done:])
    return "".join(parts)


_C_KERNEL = re.compile(rf'\bextern\s*"C"\s*(?=(?:\[aicore\]\s*)?{GLOBAL_MARK}\b)')


def device_code(text: str) -> str:
    """What a compilation for the device alone makes of ``text``: host functions are not looked at, and a kernel may be
    called like a function of the C library.

    >>> device_code('extern "C" __ascendc_global__ void div(uint8_t* x) {} void host() { div<<<1>>>(); }')
    '__ascendc_global__ void div(uint8_t* x) {} void host() {}'
    """
    return _C_KERNEL.sub("", drop_launchers(text))


_LAUNCHER = re.compile(LITERAL + r"|(?P<brace>[{}])|(?P<launch><<<)")
_TRANSPARENT = re.compile(r'(?:inline\s+)?namespace\b[^(){};]*|extern\s*"C(?:\+\+)?"\s*')


def drop_launchers(text: str) -> str:
    """``text`` with an empty body for every function that launches a kernel: the host's code, which a compilation for the
    device alone does not look at.

    >>> drop_launchers("namespace n { void k() { work(); } void host(int b) { k<<<b>>>(); } }")
    'namespace n { void k() { work(); } void host(int b) {} }'
    """
    parts: list[str] = []
    done = 0
    begins: list[int | None] = []  # for every open brace: where it is, None for one that only groups definitions
    launches = False
    for found in _LAUNCHER.finditer(text):
        if found["launch"]:
            launches = launches or any(begin is not None for begin in begins)
        elif found["brace"] == "{":
            start = max(text.rfind(stop, 0, found.start()) for stop in (";", "}", "{"))
            head = re.sub(r"^#.*$", "", text[start + 1 : found.start()], flags=re.MULTILINE).strip()
            begins.append(None if _TRANSPARENT.fullmatch(head) else found.start())
        elif found["brace"] and begins:
            begin = begins.pop()
            if launches and begin is not None and not any(b is not None for b in begins):
                parts.append(text[done : begin + 1] + "\n" * text.count("\n", begin, found.start()))
                done = found.start()
                launches = False
    parts.append(text[done:])
    return "".join(parts)


def declare_cores(text: str) -> str:
    """Kernels qualified with ``__vector__``, ``__cube__`` or ``__mix__(m, n)`` declare their type as they start.

    >>> declare_cores("__ascendc_aiv_only__ void f() { go(); }")
    ' void f() { ::ascendc_host::declare_kernel_type(::ascendc_host::KernelType::aiv_only); go(); }'
    """
    parts: list[str] = []
    done = 0
    for found in _CORES.finditer(text):
        parts.append(text[done : found.start()])
        done = found.end()
        head = re.compile(r"[^(){};]*?\b\w+\s*\(").match(text, skip_attributes(text, done))
        close = matching(text, head.end(), ")") if head else -1
        body = re.compile(r"\)\s*\{").match(text, close) if close >= 0 else None
        if body is None:
            continue  # a declaration
        kind = found["only"] or f"mix_{found['aic']}_{found['aiv']}"
        if kind not in ("aiv_only", "aic_only", "mix_1_0", "mix_0_1", "mix_1_1", "mix_1_2"):
            where = _line(text, found.start())
            raise KernelSourceError(
                f"{where}: __mix__({found['aic']}, {found['aiv']}); valid: (1, 0), (0, 1), (1, 1), (1, 2)"
            )
        parts.append(text[done : body.end()])
        parts.append(f" ::ascendc_host::declare_kernel_type(::ascendc_host::KernelType::{kind});")
        done = body.end()
    parts.append(text[done:])
    return "".join(parts)


def declare_vector_code(text: str) -> str:
    """Every kernel of ``text`` says as it starts that it has code for vector cores alone.

    >>> declare_vector_code("__ascendc_global__ void f() { go(); }")
    '__ascendc_global__ void f() { ::ascendc_host::current().vector_code = true; go(); }'
    """
    parts: list[str] = []
    done = 0
    for found in re.finditer(rf"\b{GLOBAL_MARK}\b", text):
        head = re.compile(r"[^(){};]*?\b\w+\s*\(").match(text, skip_attributes(text, found.end()))
        close = matching(text, head.end(), ")") if head else -1
        body = re.compile(r"\)\s*\{").match(text, close) if close >= 0 else None
        if body is not None:
            parts.append(text[done : body.end()] + " ::ascendc_host::current().vector_code = true;")
            done = body.end()
    parts.append(text[done:])
    return "".join(parts)


_SHARED = re.compile(r"\b__ascendc_ubuf__\b[^;(){}=*&]*\[")


def check_threads(text: str) -> str:
    """``text`` without the marks of threads.

    Raises KernelSourceError for an array that a function of threads declares ``__ubuf__``: its threads would each have one.

    >>> check_threads("__ascendc_threads__ void f(__ascendc_ubuf__ float* x) { x[0] = 1; }")
    ' void f( float* x) { x[0] = 1; }'
    """
    for found in re.finditer(r"\b__ascendc_threads__\b", text):
        head = re.compile(r"[^(){};]*?\b\w+\s*\(").match(text, skip_attributes(text, found.end()))
        close = matching(text, head.end(), ")") if head else -1
        body = re.compile(r"\)\s*(?:const\s*)?\{").match(text, close) if close >= 0 else None
        array = _SHARED.search(text, body.end(), matching(text, body.end(), "}")) if body else None
        if array is not None:
            raise KernelSourceError(
                f"{_line(text, array.start())}: a __ubuf__ array in a function of threads, which share it on a device, is not "
                "supported on the host; give the function a pointer to memory of a LocalTensor"
            )
    return re.sub(r"\b__ascendc_(?:threads|ubuf)__\b", "", text)


def _stub_parameter(parameter: Parameter) -> str:
    if parameter.is_pointer:
        return f"void* {parameter.name}"
    if parameter.is_number:
        return f"{parameter.type} {parameter.name}"
    return f"const void* {parameter.name}"  # a structure: copied from where the caller has it


def _signature(kernel: Kernel) -> str:
    parameters = ["uint32_t ascendc_blocks", "aclrtStream ascendc_stream", *map(_stub_parameter, kernel.parameters)]
    return f"uint32_t aclrtlaunch_{kernel.name}({', '.join(parameters)})"


#: The half of kernels; a program in C, or one that does not see the toolkit's headers, has the compiler's.
_HALF = """\
#if defined(__cplusplus) && defined(__has_include) && __has_include("ascendc_host/half.h")
#include "ascendc_host/half.h"
typedef ascendc_host::Float16 half;
#elif defined(__aarch64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
typedef __fp16 half;
#else
typedef _Float16 half;
#endif"""


def launch_header(kernel: Kernel) -> str:
    """The text of ``aclrtlaunch_<kernel>.h``: the launch function of a kernel for C and C++."""
    guard = f"HEADER_ACLRTLAUNCH_{kernel.name.upper()}_H"
    half = any(parameter.type == "half" for parameter in kernel.parameters)
    return f"""\
#ifndef {guard}
#define {guard}

#include <stdint.h>
#if defined(__has_include) && __has_include("acl/acl_base.h")
#include "acl/acl_base.h"
#else
typedef void* aclrtStream;
#endif
{_HALF if half else ""}
#ifndef ACLRT_LAUNCH_KERNEL
#define ACLRT_LAUNCH_KERNEL(kernel_func) aclrtlaunch_##kernel_func
#endif

#ifdef __cplusplus
extern "C"
#endif
{_signature(kernel)};

#endif  // {guard}
"""


def launch_stub(kernel: Kernel) -> str:
    """The definition of the launch function, to follow the kernel in its source."""
    values = []
    for parameter in kernel.parameters:
        if parameter.is_pointer:
            values.append(f"static_cast<{parameter.type}>({parameter.name})")
        elif parameter.is_number:
            values.append(parameter.name)
        else:
            kind = parameter.type.replace("const ", "").rstrip("& ")
            values.append(f"*static_cast<const {kind}*>({parameter.name})")
    qualified = f"{kernel.namespace}::{kernel.name}" if kernel.namespace else f"::{kernel.name}"
    arguments = "".join(f", {value}" for value in values)
    using = f"using namespace {kernel.namespace}; " if kernel.namespace else ""
    return (
        f'extern "C" {_signature(kernel)} {{ {using}return ::ascendc_host::launch("{kernel.name}", ascendc_blocks, ascendc_stream, '
        f"[](const auto&... a_) {{ {qualified}(a_...); }}{arguments}); }}\n"
    )
