"""Translation of kernel sources to C++: launches ``kernel<<<blocks, l2ctrl, stream>>>(…)`` and ``__global__`` kernels.

It works on preprocessed text, after includes and macros are expanded, and preserves line numbers.
"""

from __future__ import annotations

import re

from ascend_graph.errors import AscendGraphError
from ascend_graph.sources.kernels import GLOBAL_MARK, LITERAL, Kernel, SourceParameter, matching, skip_attributes

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
    """Launch or kernel in a source that cannot be parsed."""


_LAUNCH = re.compile(LITERAL + r"|(?P<launch><<<)")


def _line(text: str, position: int) -> str:
    """Return ``file:line`` of a position in preprocessed text, from the last line marker before it."""
    marker = None
    for found in re.finditer(r'^# (\d+) "([^"\n]*)".*$', text[:position], re.MULTILINE):
        marker = found
    if marker is None:
        return f"line {text.count(chr(10), 0, position) + 1}"
    return f"{marker[2]}:{int(marker[1]) + text.count(chr(10), marker.end(), position) - 1}"


def _callee_start(text: str, end: int) -> int:
    """Return the start of the expression that names the launched kernel; ``end`` is the position just after it."""
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
    """Rewrite every ``kernel<<<…>>>`` of ``text`` as a call of ``ascendc_host::chevrons``.

    With ``untyped``, launches go through functions that take ``void*`` for every pointer, as in ``ascendc_library()``.

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
            raise KernelSourceError(f"{_line(text, found.start())}: '<<<' needs the name of a kernel before it")
        if end < 0:
            raise KernelSourceError(f"{_line(text, found.start())}: the launch of {callee.strip()} needs its '>>>'")
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
    """Return ``text`` as a device-only compilation reads it.

    Host functions are not compiled, and a kernel may have the name of a function of the C library.

    >>> device_code('extern "C" __ascendc_global__ void div(uint8_t* x) {} void host() { div<<<1>>>(); }')
    '__ascendc_global__ void div(uint8_t* x) {} void host() {}'
    """
    return _C_KERNEL.sub("", drop_launchers(text))


_LAUNCHER = re.compile(LITERAL + r"|(?P<brace>[{}])|(?P<launch><<<)")
_TRANSPARENT = re.compile(r'(?:inline\s+)?namespace\b[^(){};]*|extern\s*"C(?:\+\+)?"\s*')


def drop_launchers(text: str) -> str:
    """Return ``text`` with an empty body for every function that launches a kernel.

    Such functions are host code, which a device-only compilation does not compile.

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


#: Beginning of ``ASSERT(condition)`` in a preprocessed source.
_ASSERTION = re.compile(LITERAL + r"|(?P<assertion>\+\s*::\s*AscendC\s*::\s*assertion\s*\()")
#: Blanks, and the line markers of the preprocessor.
_BLANK = r"(?:\s|^#[^\n]*$)"
_BLANK_AFTER = re.compile(rf"{_BLANK}*", re.MULTILINE)
_BLANK_BEFORE = re.compile(rf"{_BLANK}+\Z", re.MULTILINE)
_BEFORE_STATEMENT = re.compile(r"(?:[;{}:]|\b(?:else|do))$")
_STATEMENT = re.compile(r"[\w{}]|::")


def end_assertions(text: str) -> str:
    """Return ``text`` with a semicolon after every assertion that is a statement without one.

    A device compiles nothing of an assertion, so sources may omit the semicolon. An assertion after a value is unchanged.

    >>> end_assertions("{ +::AscendC::assertion(a) b(); int c = 3 +::AscendC::assertion(d); }")
    '{ +::AscendC::assertion(a); b(); int c = 3 +::AscendC::assertion(d); }'
    """
    parts: list[str] = []
    done = 0
    ended = -1  # where the last assertion was made a statement
    for found in _ASSERTION.finditer(text):
        if not found["assertion"] or found.start() < done:
            continue
        close = matching(text, found.end(), ")") + 1
        if close == 0:
            continue
        first = max(0, found.start() - 512)
        before = _BLANK_BEFORE.sub("", text[first : found.start()])
        blank = _BLANK_AFTER.match(text, close)
        after = text[blank.end() if blank else close :][:2]
        begins = first + len(before) in {0, ended} or _BEFORE_STATEMENT.search(before) is not None
        # After a parenthesis it may be the statement of an `if`, or follow a call.
        if not after.startswith(";") and (begins or (before.endswith(")") and _STATEMENT.match(after))):
            parts.append(f"{text[done:close]};")
            done = ended = close
    parts.append(text[done:])
    return "".join(parts)


def declare_cores(text: str) -> str:
    """Make kernels qualified with ``__vector__``, ``__cube__`` or ``__mix__(m, n)`` declare their type as they start.

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
    """Make every kernel of ``text`` declare as it starts that it has code for vector cores only.

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


_PLACED = re.compile(r"\breinterpret_cast\s*<(?=[^<>;(){}&]*\b__ascendc_ubuf__\b[^;(){}&]*\*\s*>\s*\()")


def place_addresses(text: str) -> str:
    """Return ``text`` with casts to pointers into the unified buffer that take numbers for its bytes, as a device does.

    >>> place_addresses("auto* x = reinterpret_cast<__ascendc_ubuf__ float*>((uintptr_t)1024);")
    'auto* x = ::ascendc_host::ubuf_cast<__ascendc_ubuf__ float*>((uintptr_t)1024);'
    """
    return _PLACED.sub("::ascendc_host::ubuf_cast<", text)


_SHARED = re.compile(r"\b__ascendc_ubuf__\b[^;(){}=*&]*\[")


def check_threads(text: str) -> str:
    """Return ``text`` without the qualifiers of thread functions and of their shared memory.

    Raises KernelSourceError if a thread function declares a ``__ubuf__`` array: each host thread would have its own.

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


def _stub_parameter(parameter: SourceParameter) -> str:
    if parameter.is_pointer:
        return f"void* {parameter.name}"
    if parameter.is_number:
        return f"{parameter.type} {parameter.name}"
    return f"const void* {parameter.name}"  # a structure: copied from where the caller has it


def _signature(kernel: Kernel) -> str:
    parameters = ["uint32_t ascendc_blocks", "aclrtStream ascendc_stream", *map(_stub_parameter, kernel.parameters)]
    return f"uint32_t aclrtlaunch_{kernel.name}({', '.join(parameters)})"


#: Type ``half`` of kernels; a C program, or one without the toolkit's headers on its path, uses the compiler's type.
_HALF = """\
#if defined(__cplusplus) && defined(__has_include) && __has_include("ascendc_host/internal/half.h")
#include "ascendc_host/internal/half.h"
typedef ascendc_host::Float16 half;
#elif defined(__aarch64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
typedef __fp16 half;
#else
typedef _Float16 half;
#endif"""


def launch_header(kernel: Kernel) -> str:
    """Return the text of ``aclrtlaunch_<kernel>.h``, the header of a kernel's launch function for C and C++."""
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
    """Return the definition of the launch function, to be placed after the kernel in its source."""
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
