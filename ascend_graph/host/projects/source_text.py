"""Facts read from the text of a source without a compiler: its includes, definitions and registrations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

SOURCE_SUFFIXES = (".cpp", ".cc", ".cxx")
KERNEL_SUFFIXES = frozenset({*SOURCE_SUFFIXES, ".asc", ".cce"})
HEADER_SUFFIXES = frozenset({".h", ".hpp", ".inl", ".inc"})
CODE_SUFFIXES = KERNEL_SUFFIXES | HEADER_SUFFIXES | {".hh", ".cuh"}
#: Functions of an operator that sources register: each by its own macro, or all by IMPL_OP.
REGISTERED_FUNCTIONS = ("TILING", "INFERSHAPE")

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"(?P<own>[^"\n]+)"|<(?P<system>[^>\n]+)>)', re.MULTILINE)
_MACRO_NAME = re.compile(r"\b[A-Z][A-Z0-9_]{3,}\b")
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_OP_ADD = re.compile(r"\bOP_ADD\s*\(\s*(\w+)")
_OP_DEF = re.compile(r"\bOP_ADD\b|\bpublic\s+(?:ops::)?OpDef\b|\bAICore\s*\(\s*\)")
_ADD_CONFIG = re.compile(r'\bAddConfig\s*\(\s*"(\w+)"')
_SELECTS = re.compile(r"^[ \t]*ASCENDC_TPL_SEL\s*\(", re.MULTILINE)
#: Numbers that a template parameter of a kernel has in some of its instances.
_SELECTION = re.compile(r"\bASCENDC_TPL_(?:UINT|BOOL)_SEL\s*\([^()]*\)")
#: First half of an aclnn function, with the function's name.
_ACLNN_FUNCTION = re.compile(r"\baclnnStatus\s+(aclnn\w+?)GetWorkspaceSize\s*\([^;{}]*\)\s*\{")
#: Headers of aclnn functions and of the operators that they launch.
_ACLNN_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"](?:aclnn/)?(?:opdev|aclnn_kernels)/', re.MULTILINE)
_INNER_CALL = re.compile(r"\baclnnInner([A-Z]\w*?)GetWorkspaceSize\s*\(")
#: Registrations of definitions, tiling functions and shape functions.
_REGISTERS = re.compile(r"\bOP_ADD\s*\(|\bIMPL_OP\w*\s*\(|\bREGISTER_\w+\s*\(")
_IMPL_OP = re.compile(r"^[ \t]*IMPL_OP(?:_(?:OP)?(TILING|INFERSHAPE))?\s*\(\s*(\w+)", re.MULTILINE)
#: Registration of a function that launches the operator through aclnn, and of all other functions.
_FALLBACK = re.compile(r"\.\s*(?:OpExecuteFunc|Op2StageExecuteFuncs)\s*\(")
_FUNCTION = re.compile(r"\bOP_ADD\s*\(|\.\s*(?:Tiling|InferShape|InferDataType)\s*\(")


def text_of(path: Path) -> str:
    """Return the text of a file."""
    return path.read_text(encoding="utf-8", errors="replace")


def code_of(path: Path) -> str:
    """Return a source's text without comments."""
    return _COMMENT.sub(" ", text_of(path))


@cache
def included(path: Path) -> tuple[tuple[str, bool], ...]:
    """Return the includes of a file, each with true for angle brackets."""
    return tuple((m["own"] or m["system"], m["own"] is None) for m in _INCLUDE.finditer(code_of(path)))


def macro_names(code: str) -> frozenset[str]:
    """Return the names in a text that look like macros."""
    return frozenset(_MACRO_NAME.findall(code))


def defined_macros(code: str) -> frozenset[str]:
    """Return the macros that a text defines."""
    return frozenset(_DEFINE.findall(code))


def defines_operators(code: str) -> bool:
    """Return whether a source defines operators, even if a macro makes their names."""
    return _OP_DEF.search(code) is not None


def defined_operators(code: str) -> frozenset[str]:
    """Return the operators that a source defines with OP_ADD."""
    return frozenset(_OP_ADD.findall(code))


def named_compute_units(code: str) -> frozenset[str]:
    """Return the compute units that a source names with AddConfig."""
    return frozenset(_ADD_CONFIG.findall(code))


def selects_instances(code: str) -> bool:
    """Return whether a header selects template instances of a kernel."""
    return _SELECTS.search(code) is not None


def only_selected(codes: Iterable[str]) -> frozenset[str]:
    """Return the names in selections of template instances that the texts have nowhere else."""
    selected: set[str] = set()
    others: set[str] = set()
    for code in codes:
        selected |= {name for call in _SELECTION.findall(code) for name in macro_names(call)}
        others |= macro_names(_SELECTION.sub(" ", code))
    return frozenset(name for name in selected - others if not name.startswith("ASCENDC_"))


def aclnn_functions(code: str) -> frozenset[str]:
    """Return the aclnn functions that a source defines."""
    return frozenset(_ACLNN_FUNCTION.findall(code))


def inner_calls(code: str) -> frozenset[str]:
    """Return the op types whose generated aclnn functions a source calls."""
    return frozenset(_INNER_CALL.findall(code))


def is_aclnn_source(code: str) -> bool:
    """Return whether a source belongs to hand-written aclnn functions, wherever in a project it lies."""
    if _REGISTERS.search(code):
        return False
    return _ACLNN_FUNCTION.search(code) is not None or _ACLNN_INCLUDE.search(code) is not None


def is_fallback(code: str) -> bool:
    """Return whether a source registers only functions that the graph engine may call instead of the kernel."""
    return _FALLBACK.search(code) is not None and _FUNCTION.search(code) is None


def registered(code: str) -> frozenset[tuple[str, str]]:
    """Return the (operator, function) pairs that a source registers with IMPL_OP macros."""
    found = _IMPL_OP.findall(code)
    return frozenset(
        (operator, function) for one, operator in found for function in ([one] if one else REGISTERED_FUNCTIONS)
    )
