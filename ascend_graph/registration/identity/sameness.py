"""Difference between two values of a request, functions included: the same source executed twice is the same request.

A reloaded module, a cell of a notebook, or a module under two names make new functions of the same code. They are the
same if code, defaults, closure and the globals that they read are.
"""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

#: Depth to which nested values are compared.
_DEPTH = 100
#: Attributes of a code object that say what it does, but for its constants.
CODE = (
    "co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount", "co_posonlyargcount", "co_kwonlyargcount",
    "co_flags", "co_exceptiontable",
)  # fmt: skip
#: Attributes of a class that do not affect its behavior.
_INCIDENTAL = {
    "__module__",
    "__dict__",
    "__weakref__",
    "__doc__",
    "__firstlineno__",
    "__static_attributes__",
    "__annotations__",
    "_abc_impl",
}
_OF_SLOTS = (types.MemberDescriptorType, types.GetSetDescriptorType)


def difference(old: Any, new: Any) -> str:
    """Describe where two values differ; return an empty text if they are the same.

    >>> def scaled(factor): return lambda x: x * factor
    >>> difference(scaled(2), scaled(2))
    ''
    >>> difference(scaled(2), scaled(3))
    'its closure variable factor is 3, and was 2'
    """
    return _Comparison().of(old, new, "", 0)


class _Comparison:
    def __init__(self) -> None:
        #: Pairs in comparison, or found the same: a cycle back to one of them finds no difference.
        self.met: dict[tuple[int, int], tuple[Any, Any]] = {}

    def of(self, old: Any, new: Any, where: str, depth: int, read: frozenset[str] = frozenset()) -> str:
        """Return the difference at ``where``; ``read`` are the names that a function reads from a module."""
        if old is new or (id(old), id(new)) in self.met:
            return ""
        if depth > _DEPTH:
            return f"{where or 'it'} is nested too deeply to be compared"
        self.met[id(old), id(new)] = (old, new)  # which keeps both, and their numbers
        of_one_kind = any(
            isinstance(old, kind) and isinstance(new, kind) for kind in (list | tuple, Mapping, torch.Tensor)
        )
        if type(old) is not type(new) and not of_one_kind:
            if type(old).__qualname__ != type(new).__qualname__:
                return _said(where, old, new)
            if found := self.of(type(old), type(new), _in(where, f"class {type(old).__name__}"), depth + 1):
                return found
        return self.by_kind(old, new, where, depth, read)

    def by_kind(self, old: Any, new: Any, where: str, depth: int, read: frozenset[str]) -> str:
        match old:
            case types.FunctionType():
                return self.functions(old, new, where, depth)
            case types.MethodType():
                found = self.of(old.__func__, new.__func__, where, depth + 1)
                return found or self.of(old.__self__, new.__self__, _in(where, "object"), depth + 1)
            case functools.partial():
                parts = (
                    (old.func, new.func, ""),
                    (old.args, new.args, "arguments"),
                    (old.keywords, new.keywords, "keywords"),
                )
                return self.first([(a, b, _in(where, name)) for a, b, name in parts], depth)
            case staticmethod() | classmethod():
                return self.of(old.__func__, new.__func__, where, depth + 1)
            case property():
                return self.first([(getattr(old, n), getattr(new, n), where) for n in ("fget", "fset", "fdel")], depth)
            case types.CellType():
                return self.of(contents(old), contents(new), where, depth + 1)
            case types.CodeType():
                return self.code(old, new, where, depth)
            case types.ModuleType():
                return self.modules(old, new, where, depth, read)
            case type():
                return self.classes(old, new, where, depth)
            case torch.Tensor():
                return "" if _same_tensor(old, new) else _said(where, old, new)
            case Mapping():
                return self.mappings(old, new, where, depth)
            case list() | tuple():
                return self.sequences(old, new, where, depth)
        if isinstance(old, functools._lru_cache_wrapper):
            return self.of(old.__wrapped__, new.__wrapped__, where, depth + 1)
        return self.objects(old, new, where, depth)

    def first(self, pairs: Iterable[tuple[Any, Any, str]], depth: int) -> str:
        """Return the first difference of several pairs."""
        return next((found for old, new, where in pairs if (found := self.of(old, new, where, depth + 1))), "")

    # --------------------------------------------------------------------------------------------------------- functions

    def functions(self, old: Any, new: Any, where: str, depth: int) -> str:
        if found := self.of(old.__code__, new.__code__, where, depth + 1):
            return found
        for name in ("__defaults__", "__kwdefaults__"):
            if found := self.of(getattr(old, name), getattr(new, name), _in(where, "defaults"), depth + 1):
                return found
        cells = zip(old.__code__.co_freevars, old.__closure__ or (), new.__closure__ or (), strict=True)
        for name, before, after in cells:
            if found := self.of(before, after, _in(where, f"closure variable {name}"), depth + 1):
                return found
        if found := self.of(vars(old), vars(new), _in(where, "attributes"), depth + 1):
            return found
        return self.globals(old, new, where, depth)

    def globals(self, old: Any, new: Any, where: str, depth: int) -> str:
        """Compare the globals that two functions read, unless both have the same dictionary."""
        if old.__globals__ is new.__globals__:
            return ""
        read = frozenset(names_read(old.__code__))
        for name in sorted(set(globals_read(old.__code__))):
            before, after = (f.__globals__.get(name, ABSENT) for f in (old, new))
            if found := self.of(before, after, _in(where, f"global {name}"), depth + 1, read):
                return found
        return ""

    def code(self, old: types.CodeType, new: types.CodeType, where: str, depth: int) -> str:
        same = all(getattr(old, name, None) == getattr(new, name, None) for name in CODE)
        if same and len(old.co_consts) == len(new.co_consts):
            constants = zip(old.co_consts, new.co_consts, strict=True)
            if not self.first([(a, b, where) for a, b in constants], depth):
                return ""
        return f"{where or 'its'} code is that of line {new.co_firstlineno}, and was that of line {old.co_firstlineno}"

    def modules(self, old: Any, new: Any, where: str, depth: int, read: frozenset[str]) -> str:
        if getattr(old, "__file__", None) is None or old.__file__ != getattr(new, "__file__", None):
            return _said(where, old, new)
        for name in sorted(read & (vars(old).keys() | vars(new).keys())):
            before, after = vars(old).get(name, ABSENT), vars(new).get(name, ABSENT)
            if found := self.of(before, after, f"{where}.{name}", depth + 1, read):
                return found
        return ""

    # ----------------------------------------------------------------------------------------------------------- values

    def classes(self, old: type, new: type, where: str, depth: int) -> str:
        if old.__qualname__ != new.__qualname__ or len(old.__bases__) != len(new.__bases__):
            return _said(where, old, new)
        if not (is_of_program(old) and is_of_program(new)):
            return _said(where, old, new)  # of C: it is the same, or another
        bases = self.first(zip(old.__bases__, new.__bases__, [where] * len(old.__bases__), strict=True), depth)
        return bases or self.mappings(own_members(old), own_members(new), where, depth)

    def mappings(self, old: Mapping[Any, Any], new: Mapping[Any, Any], where: str, depth: int) -> str:
        if old.keys() != new.keys():
            return _said(where, old, new)
        return self.first(((value, new[key], _in(where, f"[{key!r}]")) for key, value in old.items()), depth)

    def sequences(self, old: Sequence[Any], new: Sequence[Any], where: str, depth: int) -> str:
        if type(old) is not type(new) or len(old) != len(new):
            return _said(where, old, new)
        return self.first(((a, b, _in(where, f"[{n}]")) for n, (a, b) in enumerate(zip(old, new, strict=True))), depth)

    def objects(self, old: Any, new: Any, where: str, depth: int) -> str:
        if hasattr(old, "tobytes") and hasattr(old, "dtype"):  # of numpy, whose comparison is element by element
            same = (old.dtype, old.shape) == (new.dtype, new.shape) and not old.dtype.hasobject
            return "" if same and old.tobytes() == new.tobytes() else _said(where, old, new)
        if isinstance(old, float | complex):
            return "" if repr(old) == repr(new) else _said(where, old, new)  # NaN is itself, and -0.0 is not 0.0
        try:
            if bool(old == new):
                return ""
        except Exception:  # of a comparison that anybody may have written
            return _said(where, old, new)
        state = [state_of(value) for value in (old, new)]
        if state[0] is None or state[1] is None:
            return _said(where, old, new)
        return self.mappings(state[0], state[1], where, depth)


_HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE
#: What stands for a value that there is not.
ABSENT = object()


def is_of_program(cls: type) -> bool:
    """Return whether a class was made by a program, not in C."""
    return bool(cls.__flags__ & _HEAP)


def own_members(cls: type) -> dict[str, Any]:
    """Return the members of a class that affect its behavior."""
    return {k: v for k, v in vars(cls).items() if k not in _INCIDENTAL and not isinstance(v, _OF_SLOTS)}


def state_of(value: Any) -> Mapping[str, Any] | None:
    """Return the attributes of an object, or None if they are not its whole state, as for a class of C."""
    cls = type(value)
    if not cls.__flags__ & _HEAP or any(base is not object and not base.__flags__ & _HEAP for base in cls.__mro__):
        return None
    compares = any("__eq__" in vars(base) for base in cls.__mro__ if base is not object)
    if compares and not hasattr(cls, "__dataclass_fields__"):
        return None  # it says itself what makes it equal
    slots = [name for base in cls.__mro__ for name in _slots(base) if hasattr(value, name)]
    return getattr(value, "__dict__", {}) | {name: getattr(value, name) for name in slots}


def _slots(cls: type) -> tuple[str, ...]:
    named = vars(cls).get("__slots__", ())
    return (named,) if isinstance(named, str) else tuple(n for n in named if n not in ("__dict__", "__weakref__"))


def contents(cell: types.CellType) -> Any:
    """Return the value of a closure variable, or ABSENT before it is assigned."""
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return ABSENT


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def names_read(code: types.CodeType) -> Iterator[str]:
    """Yield the names of globals and attributes that code reads, nested functions included."""
    for one in _codes(code):
        yield from one.co_names


def globals_read(code: types.CodeType) -> Iterator[str]:
    """Yield the globals that code reads, nested functions included."""
    for one in _codes(code):
        for instruction in dis.get_instructions(one):
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                yield instruction.argval


def _in(where: str, part: str) -> str:
    if not where:
        return f"its {part}" if part else ""
    return f"{where}{part}" if part.startswith("[") else f"{where}, {part}" if part else where


def _said(where: str, old: Any, new: Any) -> str:
    return f"{where or 'it'} is {_short(new)}, and was {_short(old)}"


def _short(value: Any) -> str:
    if value is ABSENT:
        return "absent"
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}…"


def _same_tensor(old: Any, new: Any) -> bool:
    """Return whether tensors have the same dtype, device and numbers."""
    if type(old) is not type(new) or (old.dtype, old.device, old.layout) != (new.dtype, new.device, new.layout):
        return False
    if old.layout is not torch.strided or old.device.type == "meta":
        return False
    return bool(old.shape == new.shape and old.stride() == new.stride() and torch.equal(old, new))
