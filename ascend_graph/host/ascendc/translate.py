"""Kernel sources as C++: launches ``kernel<<<blocks, l2ctrl, stream>>>(…)`` and kernels marked ``__global__``.

Works on preprocessed text, so includes and macros have had their say, and keeps every line on its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ascend_graph.errors import AscendGraphError

GLOBAL_MARK = "__ascendc_global__"
"""What ``__global__`` is defined to while a source is preprocessed, so that kernels can be found in the result."""


CORE_MARKS = {
    "__vector__": "__ascendc_aiv_only__",
    "__cube__": "__ascendc_aic_only__",
    "__mix__(...)": "__ascendc_mix__(__VA_ARGS__)",
}
"""The qualifiers that say which cores a kernel runs on, and what they are defined to while a source is preprocessed."""

_CORES = re.compile(
    r"\b__ascendc_(?P<only>aiv_only|aic_only)__|\b__ascendc_mix__\(\s*(?P<aic>\d)\s*,\s*(?P<aiv>\d)\s*\)"
)


class KernelSourceError(AscendGraphError):
    """A kernel source has a launch or a kernel that cannot be understood."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A kernel's parameter: its type as written and its name."""

    type: str
    name: str

    @property
    def is_pointer(self) -> bool:
        return self.type.endswith("*")

    @property
    def is_number(self) -> bool:
        return all(word in _NUMBERS for word in self.type.replace("const", "").split())


@dataclass(frozen=True, slots=True)
class Kernel:
    """A function marked ``__global__``: its name with its namespaces, and its parameters."""

    name: str
    namespace: str
    parameters: tuple[Parameter, ...]


_NUMBERS = frozenset(
    {
        "bool",
        "char",
        "short",
        "int",
        "long",
        "unsigned",
        "signed",
        "float",
        "double",
        "size_t",
        "half",
        "int8_t",
        "int16_t",
        "int32_t",
        "int64_t",
        "uint8_t",
        "uint16_t",
        "uint32_t",
        "uint64_t",
    }
)

# Literals are matched so that what is inside them is not looked at.
_LITERAL = r'R"(?P<raw>[^()\\\s]{0,16})\((?:.|\n)*?\)(?P=raw)"|"(?:\\.|[^"\\\n])*"|\b\d[\w\']*|\'(?:\\.|[^\'\\\n])+\''
_LAUNCH = re.compile(_LITERAL + r"|(?P<launch><<<)")
_MARKED = re.compile(_LITERAL + rf"|(?P<open>[{{}}])|(?P<namespace>\bnamespace\b)|(?P<mark>\b{GLOBAL_MARK}\b)")
_ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)")
_OPENING, _CLOSING = "([{", ")]}"


def _line(text: str, position: int) -> str:
    """``file:line`` of a position in preprocessed text, by the last line marker before it."""
    marker = None
    for found in re.finditer(r'^# (\d+) "([^"\n]*)".*$', text[:position], re.MULTILINE):
        marker = found
    if marker is None:
        return f"line {text.count(chr(10), 0, position) + 1}"
    return f"{marker[2]}:{int(marker[1]) + text.count(chr(10), marker.end(), position) - 1}"


def _matching(text: str, start: int, stop: str) -> int:
    """Position of ``stop`` at bracket depth 0 from ``start`` on, or -1."""
    depth = 0
    position = start
    while position < len(text):
        literal = re.compile(_LITERAL).match(text, position)
        if literal:
            position = literal.end()
            continue
        if depth == 0 and text.startswith(stop, position):
            return position
        if text[position] in _OPENING:
            depth += 1
        elif text[position] in _CLOSING:
            depth -= 1
            if depth < 0:
                return -1
        position += 1
    return -1


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


def rewrite_launches(text: str) -> str:
    """Every ``kernel<<<…>>>`` of ``text`` as a call of ``ascendc_host::chevrons``.

    Raises KernelSourceError for a launch without a kernel or without its ``>>>``.

    >>> rewrite_launches("add<half><<<8, nullptr, s>>>(x, y);")
    '::ascendc_host::chevrons("add<half>", [](const auto&... a_) { add<half>(a_...); }, 8, nullptr, s)(x, y);'
    """
    parts: list[str] = []
    done = 0
    for found in _LAUNCH.finditer(text):
        if not found["launch"] or found.start() < done:
            continue
        start = _callee_start(text, found.start())
        callee = text[start : found.start()]
        end = _matching(text, found.end(), ">>>")
        if not callee.strip():
            raise KernelSourceError(f"{_line(text, found.start())}: '<<<' without the name of a kernel before it")
        if end < 0:
            raise KernelSourceError(f"{_line(text, found.start())}: launch of {callee.strip()} without its '>>>'")
        name = " ".join(callee.split())
        configuration = text[found.end() : end]
        parts.append(text[done:start] + "\n" * callee.count("\n"))
        parts.append(
            f'::ascendc_host::chevrons("{name}", [](const auto&... a_) {{ {callee.strip()}(a_...); }}, {configuration})'
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


_LAUNCHER = re.compile(_LITERAL + r"|(?P<brace>[{}])|(?P<launch><<<)")
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


def _parameters(text: str) -> Iterator[Parameter]:
    depth = 0
    start = 0
    pieces = []
    for position, character in enumerate(text):
        depth += (character in "([{<") - (character in ")]}>")
        if character == "," and depth == 0:
            pieces.append(text[start:position])
            start = position + 1
    pieces.append(text[start:])
    for index, piece in enumerate(pieces):
        words = " ".join(_ATTRIBUTE.sub(" ", piece.partition("=")[0]).replace("*", " * ").split())
        if words in ("", "void"):
            continue
        match = re.fullmatch(r"(?P<type>.*[\s*&>])(?P<name>[A-Za-z_]\w*)", words)
        unnamed = match is None or match["name"] in _NUMBERS
        kind = words if unnamed or match is None else match["type"].strip()
        name = f"argument{index}" if unnamed or match is None else match["name"]
        yield Parameter(kind.replace(" *", "*"), name)


def find_kernels(text: str) -> tuple[Kernel, ...]:
    """The kernels defined in preprocessed ``text``, templates left out.

    >>> find_kernels('extern "C" __ascendc_global__ void add(uint8_t * x, uint32_t n) {}')[0].parameters
    (Parameter(type='uint8_t*', name='x'), Parameter(type='uint32_t', name='n'))
    """
    kernels: list[Kernel] = []
    namespaces: list[str | None] = []  # one entry for every open brace
    opened: str | None = None
    for found in _MARKED.finditer(text):
        if found["namespace"]:
            named = re.compile(r"namespace\s+([\w:]+)\s*\{").match(text, found.start())
            opened = named[1] if named else None
        elif found["open"] == "{":
            namespaces.append(opened)
            opened = None
        elif found["open"] == "}":
            if namespaces:
                namespaces.pop()
        elif found["mark"]:
            head = text[max(text.rfind(stop, 0, found.start()) for stop in (";", "}", "{", "\n# ")) + 1 : found.start()]
            match = re.compile(r"[^(){};]*?\b(\w+)\s*\(").match(text, _skip_attributes(text, found.end()))
            if match is None or re.search(r"\btemplate\s*<", head):
                continue
            close = _matching(text, match.end(), ")")
            if close < 0 or text[close + 1 :].lstrip()[:1] != "{":
                continue  # a declaration
            namespace = "::".join(name for name in namespaces if name)
            kernels.append(Kernel(match[1], namespace, tuple(_parameters(text[match.end() : close]))))
    return tuple(kernels)


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
        head = re.compile(r"[^(){};]*?\b\w+\s*\(").match(text, _skip_attributes(text, done))
        close = _matching(text, head.end(), ")") if head else -1
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


def _skip_attributes(text: str, position: int) -> int:
    attribute = re.compile(r"\s*(?:__attribute__\s*\(|(\[\[.*?\]\]))")
    while (match := attribute.match(text, position)) is not None:
        end = match.end() if match[1] else _matching(text, match.end(), ")") + 1
        if end == 0:
            break
        position = end
    return position


def _stub_parameter(parameter: Parameter) -> str:
    if parameter.is_pointer:
        return f"void* {parameter.name}"
    if parameter.is_number:
        return f"{parameter.type} {parameter.name}"
    return f"const void* {parameter.name}"  # a structure: copied from where the caller has it


def _signature(kernel: Kernel) -> str:
    parameters = ["uint32_t blockDim", "aclrtStream stream", *map(_stub_parameter, kernel.parameters)]
    return f"uint32_t aclrtlaunch_{kernel.name}({', '.join(parameters)})"


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
{"typedef _Float16 half;" if half else ""}
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
        f'extern "C" {_signature(kernel)} {{ {using}return ::ascendc_host::launch("{kernel.name}", blockDim, stream, '
        f"[](const auto&... a_) {{ {qualified}(a_...); }}{arguments}); }}\n"
    )
