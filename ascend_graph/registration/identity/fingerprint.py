"""Fingerprint of values, functions included: another process that executes the same source gets the same one.

What has no value that can be named, such as an object of a class of C, has no fingerprint.
"""

from __future__ import annotations

import builtins
import copyreg
import enum
import functools
import hashlib
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch

from ascend_graph.registration.identity.sameness import (
    ABSENT,
    CODE,
    contents,
    globals_read,
    is_of_program,
    names_read,
    own_members,
    state_of,
)

#: Packages whose contents their versions give; PyTorch's keys have those that are not the interpreter's.
_VERSIONED = frozenset(
    {"torch", "torch_npu", "torchair", "npugraph_ex", "ascend_graph", "numpy", *sys.stdlib_module_names}
)
#: Values that their representation gives.
_PLAIN = (
    bool, int, float, complex, str, bytes, types.NoneType, types.EllipsisType, range,
    torch.dtype, torch.device, torch.layout, torch.memory_format,
)  # fmt: skip
#: Number of values after which the search for what a function reads is given up.
_MOST = 20_000


class NoFingerprintError(Exception):
    """Error of a value of which nothing says whether another process has the same."""


def fingerprint(value: Any, operator: Callable[[Any], Any] = str) -> str:
    """Return the fingerprint of a value.

    Args:
        value: Values of Python, functions, classes, tensors, and containers of them.
        operator: What stands for a torch operator that a function reads.

    Raises:
        NoFingerprintError: Something in it has none.

    >>> def scaled(factor): return lambda x: x * factor
    >>> fingerprint(scaled(2)) == fingerprint(scaled(2)), fingerprint(scaled(2)) == fingerprint(scaled(3))
    (True, False)
    """
    walk = _Walk(operator)
    walk.add(value)
    return walk.digest.hexdigest()


class _Walk:
    def __init__(self, operator: Callable[[Any], Any]) -> None:
        self.digest = hashlib.sha256()
        self._operator = operator
        #: Numbers of the values that were met, which are kept so that their identities stay theirs.
        self._met: dict[int, tuple[int, Any]] = {}

    def put(self, *texts: object) -> None:
        """Add texts, each with its length."""
        for text in texts:
            data = text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogatepass")
            self.digest.update(b"%d:" % len(data) + data)

    def all(self, values: Iterable[Any]) -> None:
        for value in values:
            self.add(value)

    def add(self, value: Any, read: frozenset[str] = frozenset()) -> None:
        """Add a value; ``read`` are the names that a function reads from a module."""
        if isinstance(value, _PLAIN) and not isinstance(value, enum.Enum):
            self.put(type(value).__name__, repr(value))
            return
        key = hash((id(value), read)) if isinstance(value, types.ModuleType) else id(value)
        if key in self._met:
            self.put("met", self._met[key][0])
            return
        if len(self._met) >= _MOST:
            raise NoFingerprintError(value)
        self._met[key] = (len(self._met), value)
        self.by_kind(value, read)

    def by_kind(self, value: Any, read: frozenset[str]) -> None:
        if isinstance(value, type | types.FunctionType | types.ModuleType | types.BuiltinFunctionType):
            module = _defined_in(value)
            bound = value.__self__ if isinstance(value, types.BuiltinFunctionType) else None
            if module.partition(".")[0] in _VERSIONED and not getattr(value, "__closure__", None):
                self.put("versioned", module, getattr(value, "__qualname__", ""))
                if bound is not None and not isinstance(bound, types.ModuleType):
                    self.add(bound)
                return
        self.put(type(value).__qualname__)
        match value:
            case torch._ops.OpOverload() | torch._ops.OpOverloadPacket():
                self.add(self._operator(value))
            case types.FunctionType():
                self.function(value)
            case types.MethodType():
                self.all((value.__func__, value.__self__))
            case functools.partial():
                self.all((value.func, value.args, value.keywords))
            case staticmethod() | classmethod():
                self.add(value.__func__)
            case property():
                self.all((value.fget, value.fset, value.fdel))
            case types.CodeType():
                self.code(value)
            case types.ModuleType():
                self.put(value.__name__)
                self.named((name, vars(value).get(name, ABSENT)) for name in sorted(read & vars(value).keys()))
            case type():
                self.put(value.__module__, value.__qualname__)
                self.all(value.__bases__)
                if is_of_program(value):
                    self.named(sorted(own_members(value).items()))
            case torch.Tensor():
                self.tensor(value)
            case enum.Enum():
                self.add(type(value))
                self.put(value.name)
            case set() | frozenset():
                self.put(*sorted(fingerprint(member, self._operator) for member in value))
            case Mapping():
                self.put(len(value))
                self.all(part for item in value.items() for part in item)
            case list() | tuple():
                self.put(len(value))
                self.all(value)
            case _:
                self.object(value)

    def named(self, pairs: Iterable[tuple[str, Any]], read: frozenset[str] = frozenset()) -> None:
        for name, value in pairs:
            self.put(name)
            if value is not ABSENT:
                self.add(value, read)

    def function(self, value: types.FunctionType) -> None:
        code = value.__code__
        self.all((code, value.__defaults__, value.__kwdefaults__, vars(value)))
        self.named((name, contents(cell)) for name, cell in zip(code.co_freevars, value.__closure__ or (), strict=True))
        read = frozenset(names_read(code))
        for name in sorted(set(globals_read(code))):
            found = value.__globals__.get(name, getattr(builtins, name, ABSENT))
            self.named([(name, found)], read)

    def code(self, value: types.CodeType) -> None:
        self.put(*(getattr(value, name, None) for name in CODE))
        self.all(value.co_consts)

    def tensor(self, value: torch.Tensor) -> None:
        if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout is not torch.strided:
            raise NoFingerprintError(value)
        self.put(value.dtype, value.device, tuple(value.shape), value.stride())
        if value.device.type != "meta":
            data = value.detach().cpu().contiguous()
            self.put(data.reshape(-1).view(torch.uint8).numpy().tobytes() if data.numel() else b"")

    def object(self, value: Any) -> None:
        if isinstance(value, functools._lru_cache_wrapper):
            self.add(value.__wrapped__)
            return
        if hasattr(value, "tobytes") and hasattr(value, "dtype") and not value.dtype.hasobject:  # of numpy
            self.put(value.dtype, value.shape, value.tobytes())
            return
        self.add(type(value))
        if (state := state_of(value)) is not None:
            self.named(sorted(state.items()))
            return
        try:
            reduce = copyreg.dispatch_table.get(type(value))
            parts: Any = value.__reduce_ex__(4) if reduce is None else reduce(value)
        except Exception as error:  # of a method that anybody may have written
            raise NoFingerprintError(value) from error
        self.all([parts] if isinstance(parts, str) else [list(p) if isinstance(p, Iterator) else p for p in parts])


def _defined_in(value: Any) -> str:
    """Return the module of a value's code; a function may say another one, as ``functools.wraps`` makes it."""
    if isinstance(value, types.ModuleType):
        return value.__name__
    return str(
        value.__globals__.get("__name__", "") if isinstance(value, types.FunctionType) else value.__module__ or ""
    )
