"""Torch operator schema as an immutable value, with the parts of ``torch.FunctionSchema`` that a binding needs."""

from __future__ import annotations

import enum
import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from ascend_graph.errors import AscendGraphError

_QUALIFIED = re.compile(r"(?:torch\.ops\.)?(\w+)(?:::|\.)(\w+(?:\.\w+)?)")


class SchemaError(AscendGraphError, TypeError):
    """Value that is not a single operator overload."""


class ArgumentKind(enum.Enum):
    """Kind of one element of an argument; the value is the name in a schema."""

    TENSOR = "Tensor"
    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    STR = "str"
    SCALAR = "Scalar"
    DTYPE = "ScalarType"
    LAYOUT = "Layout"
    MEMORY_FORMAT = "MemoryFormat"
    DEVICE = "Device"
    GENERATOR = "Generator"
    COMPLEX = "complex"
    OTHER = "other"


_KINDS: Mapping[str, ArgumentKind] = MappingProxyType(
    {kind.value: kind for kind in ArgumentKind} | {"number": ArgumentKind.SCALAR, "SymInt": ArgumentKind.INT}
)


@dataclass(frozen=True, slots=True)
class SchemaArgument:
    """One argument of a schema."""

    name: str
    kind: ArgumentKind
    #: 0 for one value, 1 for a list, 2 for a list of lists.
    list_depth: int = 0
    optional: bool = False
    has_default: bool = False
    default: Any = None
    kwarg_only: bool = False
    #: True if the operator writes to it: ``Tensor(a!)``.
    mutated: bool = False
    #: True if elements of the list may be absent: ``Tensor?[]``.
    optional_elements: bool = False

    @property
    def is_tensor(self) -> bool:
        """True if it is a tensor or a list of tensors."""
        return self.kind is ArgumentKind.TENSOR

    @property
    def type_text(self) -> str:
        """Type as a schema writes it, e.g. ``int[]?``."""
        text = self.kind.value + ("(a!)" if self.mutated else "") + ("?" if self.optional_elements else "")
        return text + "[]" * self.list_depth + ("?" if self.optional else "")


@dataclass(frozen=True, slots=True)
class SchemaReturn:
    """One return of a schema."""

    #: The name, empty if the schema does not give one.
    name: str
    kind: ArgumentKind
    list_depth: int = 0
    #: The argument that is returned itself, by name: ``Tensor(a!)`` on both sides.
    alias_of: str | None = None

    @property
    def type_text(self) -> str:
        """Type as a schema writes it, e.g. ``Tensor[]``."""
        return self.kind.value + ("(a!)" if self.alias_of else "") + "[]" * self.list_depth


@dataclass(frozen=True, slots=True)
class OpSchema:
    """The schema of one overload."""

    name: str
    overload: str
    arguments: tuple[SchemaArgument, ...]
    returns: tuple[SchemaReturn, ...]
    text: str = field(compare=False)

    @property
    def qualified_name(self) -> str:
        """Name as ``namespace::name``, with ``.overload`` if it has one."""
        return f"{self.name}.{self.overload}" if self.overload else self.name

    def argument(self, name: str) -> SchemaArgument:
        """Return the argument of that name; raise ``KeyError`` if it does not exist."""
        for argument in self.arguments:
            if argument.name == name:
                return argument
        raise KeyError(name)


def read_schema(schema: Any) -> OpSchema:
    """Return the schema of an overload, ``overload._schema``, as a value.

    >>> import torch
    >>> schema = read_schema(torch.ops.aten.mul_.Scalar._schema)
    >>> [(a.name, a.type_text) for a in schema.arguments], schema.returns[0].alias_of
    ([('self', 'Tensor(a!)'), ('other', 'Scalar')], 'self')
    """
    arguments = []
    owners: dict[str, str] = {}
    for argument in schema.arguments:
        kind, depth, optional, optional_elements = _read_type(str(argument.real_type))
        alias = argument.alias_info
        if alias is not None:
            owners.update(dict.fromkeys(alias.before_set, argument.name))
        has_default = argument.has_default_value()
        arguments.append(
            SchemaArgument(
                argument.name,
                kind,
                depth,
                optional,
                has_default,
                _frozen(argument.default_value) if has_default else None,
                bool(argument.kwarg_only),
                alias is not None and alias.is_write,
                optional_elements,
            )
        )
    returns = []
    for returned in schema.returns:
        kind, depth, _, _ = _read_type(str(returned.real_type))
        alias = returned.alias_info
        owner = next((owners[name] for name in alias.before_set if name in owners), None) if alias is not None else None
        returns.append(SchemaReturn(returned.name or "", kind, depth, owner))
    return OpSchema(schema.name, schema.overload_name, tuple(arguments), tuple(returns), str(schema))


@lru_cache(maxsize=256)
def _read_type(text: str) -> tuple[ArgumentKind, int, bool, bool]:
    optional, depth, optional_elements = False, 0, False
    while text.endswith("]"):
        head, _, text = text.partition("[")
        text = text[:-1]
        if head == "List":
            depth += 1
        elif head == "Optional":
            if depth:
                optional_elements = True
            else:
                optional = True
        else:
            return ArgumentKind.OTHER, depth, optional, optional_elements
    return _KINDS.get(text, ArgumentKind.OTHER), depth, optional, optional_elements


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def unwrapped(op: Any) -> Any:
    """Return the ``OpOverload`` of what ``torch.library.custom_op`` returned, and anything else as it is."""
    from torch._library.custom_ops import CustomOpDef

    return op._opoverload if isinstance(op, CustomOpDef) else op


def single_overload(op: Any) -> Any:
    """Return the ``OpOverload`` of an overload, of a packet that has exactly one, or of an operator of ``torch.library.custom_op``.

    Raises:
        SchemaError: It is neither, or the packet has several overloads.

    >>> import torch
    >>> single_overload(torch.ops.aten.mul)
    Traceback (most recent call last):
        ...
    ascend_graph.binding.op_schema.SchemaError: torch.ops.aten.mul has 16 overloads...
    """
    import torch

    op = unwrapped(op)
    if isinstance(op, torch._ops.OpOverload):
        return op
    if not isinstance(op, torch._ops.OpOverloadPacket):
        raise SchemaError(f"eager={op!r} is not a torch operator; pass {_operator_instead(op)}")
    names = op.overloads()
    if len(names) != 1:
        lines = "\n".join(f"  torch.ops.{op}.{name}: {getattr(op, name)._schema}" for name in names)
        raise SchemaError(f"torch.ops.{op} has {len(names)} overloads; pass one of them:\n{lines}")
    return getattr(op, names[0])


def _operator_instead(value: Any) -> str:
    """Return what to pass instead of a value that is not an operator."""
    if isinstance(value, str) and (found := _QUALIFIED.fullmatch(value)):
        return f"the operator, not its name: torch.ops.{found[1]}.{found[2]}"
    if callable(value):
        return (
            "an operator made of the function, which has no schema: by torch.library.custom_op, or "
            'ascend_graph.define_from_function("mine::name(Tensor x) -> Tensor", function)'
        )
    return (
        "an overload, such as torch.ops.npu.npu_swiglu.default, or a packet that has one overload, such as "
        "torch.ops.npu.npu_swiglu"
    )


def check_keywords(schema: OpSchema) -> None:
    """Raise if no graph can contain a call: PyTorch writes graphs as Python source, keyword-only arguments by name.

    Raises:
        SchemaError: A keyword-only argument is a keyword of Python, or ``self``, a parameter of PyTorch's fake tensors.
    """
    for argument in schema.arguments:
        if argument.kwarg_only and (keyword.iskeyword(argument.name) or argument.name == "self"):
            raise SchemaError(
                f"{schema.qualified_name}: no graph can contain the keyword-only argument {argument.name}, because PyTorch "
                f"writes it into Python source or passes it on by that name. Write {argument.name}_ in the schema, or "
                "make it positional"
            )
