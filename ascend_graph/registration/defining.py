"""Operators that are defined from a Python function which computes them, such as one that pybind11 binds."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ascend_graph.binding.op_schema import OpSchema, SchemaError, single_overload
from ascend_graph.binding.schema_text import parse_schema
from ascend_graph.errors import AscendGraphError
from ascend_graph.registration.request import RegistrationError
from ascend_graph.registration.writing.layouts import are_apart, layout_of
from ascend_graph.registration.writing.returned_arguments import check_returned_argument
from ascend_graph.registration.writing.unstated_writes import check_marks

_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*(?:\(\))?(?:\.[A-Za-z_]\w*(?:\(\))?)*")
#: Schema and function of each operator that was defined, and the library that holds the definition.
_defined: dict[str, tuple[str, Any, torch.library.Library]] = {}


class BoundFunctionError(AscendGraphError, ImportError):
    """Function of an operator that cannot be imported."""


def define_from_function(schema: str, function: str | Callable[..., Any]) -> Any:
    """Define a torch operator whose eager half is a Python function; return its overload.

    pybind11 binds functions without a schema, which no graph can hold. The operator made here has one: pass it to
    :func:`ascend_graph.register_kernel` or :func:`ascend_graph.register_op` as ``eager=``. The function gets the arguments
    by position, keyword-only ones too, with their defaults filled in. It computes for tensors on the NPU, in new memory.

    Args:
        schema: The schema with its namespace, ``"mine::scale(Tensor x, float by) -> Tensor"``. Arguments that the function
            writes are marked, ``Tensor(a!) out``: a graph drops or reorders calls whose writes it does not know.
        function: The function, or ``"module:function"``, which the first call imports. Parts after the colon may be called
            without arguments: ``"mine.builder:Builder().load().scale"``. Or an operator whose own schema lacks the marks,
            ``torch.ops.mine.put``: while the new one is registered, graphs have it in place of that operator.

    Returns:
        The overload. The same schema and function give the same overload again.

    Raises:
        SchemaError: The schema has no namespace, or is not one.
        RegistrationError: The operator is defined already, with another schema or function.
        BoundFunctionError: A call cannot import the function.

    >>> import torch
    >>> op = define_from_function("defining_example::halve(Tensor x) -> Tensor", lambda x: x / 2)
    >>> op._schema.name
    'defining_example::halve'
    >>> define_from_function("defining_example::broken(Tensor x) -> Tensor", "defining_example halve")
    Traceback (most recent call last):
    ...
    ascend_graph.registration.request.RegistrationError: defining_example::broken: function='defining_example halve' does not \
name a function; expected module:function. Write: define_from_function("defining_example::broken(…)", "my_package._C:broken")
    """
    read = parse_schema(schema)
    if "::" not in read.name:
        raise SchemaError(f'schema {read.text}: has no namespace; expected namespace::name. Write: "mine::{read.text}"')
    name = read.qualified_name
    if isinstance(function, str) and _TARGET.fullmatch(function) is None:
        raise RegistrationError(
            f"{name}: function={function!r} does not name a function; expected module:function. "
            f'Write: define_from_function("{name}(…)", "my_package._C:{read.name.partition("::")[2]}")'
        )
    if isinstance(function, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        function = single_overload(function)
        check_marks(read, function)
    if not isinstance(function, str) and not callable(function):
        raise RegistrationError(f"{name}: function={function!r} must be callable, or a text module:function")
    earlier = _defined.get(name)
    if earlier is None:
        _defined[name] = (
            read.text,
            function,
            _define(name, read.text, _kernel(name, read.text, function, _filling(read)), _keys(function)),
        )
    elif earlier[:2] != (read.text, function):
        raise RegistrationError(
            f"{name} is defined as {earlier[0]} by {earlier[1]!r}, and now as {read.text} by {function!r}; expected the same. "
            "Define it once"
        )
    packet = getattr(getattr(torch.ops, read.name.partition("::")[0]), read.name.partition("::")[2])
    return getattr(packet, read.overload or "default")


def unmarked_operator(overload: Any) -> Any:
    """Return the operator that an operator was defined from, whose schema lacks the marks at what is written, or None."""
    function = _defined.get(overload.name(), ("", None))[1]
    return function if isinstance(function, torch._ops.OpOverload) else None


def _keys(function: Any) -> list[str]:
    """Return the dispatch keys for which an operator that is defined from a function has a kernel."""
    on_cpu = isinstance(function, torch._ops.OpOverload) and torch._C._dispatch_has_computed_kernel_for_dispatch_key(
        function.name(), "CPU"
    )
    return ["PrivateUse1", "CPU"] if on_cpu else ["PrivateUse1"]


def _define(name: str, schema: str, kernel: Callable[..., Any], keys: list[str]) -> torch.library.Library:
    """Define an operator and its kernel; return the library that holds both.

    Raises:
        RegistrationError: torch has an operator of that name.
    """
    namespace, _, rest = schema.partition("::")
    library = torch.library.Library(namespace, "FRAGMENT")
    try:
        library.define(rest, tags=(torch.Tag.pt2_compliant_tag,))
    except RuntimeError as error:
        library._destroy()
        raise RegistrationError(
            f"{name} cannot be defined: {str(error).splitlines()[0]}. Define it under a namespace of its own"
        ) from None
    for key in keys:
        library.impl(rest.partition("(")[0], kernel, key)
    return library


def _filling(schema: Any) -> Callable[[tuple[Any, ...], dict[str, Any]], list[Any]]:
    """Return what completes the arguments of a call: the dispatcher leaves trailing defaults out."""
    arguments = [
        (one.name, list(one.default) if isinstance(one.default, tuple) else one.default) for one in schema.arguments
    ]

    def filled(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        return [*args, *(kwargs.get(name, default) for name, default in arguments[len(args) :])]

    return filled


def _kernel(
    name: str,
    schema: str,
    function: str | Callable[..., Any],
    filled: Callable[[tuple[Any, ...], dict[str, Any]], list[Any]],
) -> Callable[..., Any]:
    """Return the kernel that calls the function; it is imported once."""
    read = parse_schema(schema)
    returns = len(read.returns)
    lists = any(one.list_depth for one in read.returns)
    held: list[Callable[..., Any]] = [] if isinstance(function, str) else [function]

    def kernel(*args: Any, **kwargs: Any) -> Any:
        if not held:
            held.append(_imported(name, str(function)))
        given = filled(args, kwargs)
        result = held[0](*args, **kwargs) if isinstance(function, torch._ops.OpOverload) else held[0](*given)
        if isinstance(result, list | tuple) and not lists:
            # std::vector is a list in Python, and a schema may say how many tensors it has.
            result = tuple(result) if returns != 1 or len(result) != 1 else result[0]
        _check_results(read, given, result if returns > 1 and isinstance(result, list | tuple) else [result])
        return result

    return kernel


def _check_results(schema: OpSchema, given: Sequence[Any], results: Sequence[Any]) -> None:
    """Check that results are what graphs take them for: the argument that the schema says, or memory of their own.

    Raises:
        AscendGraphError: A result shares memory, and the schema does not say that it is an argument; or it is not that argument.
    """
    arguments = {a.name: v for a, v in zip(schema.arguments, given, strict=True)}
    before = [(t, f"the argument {name}") for name, v in arguments.items() for t in _tensors(v)]
    for number, (returned, value) in enumerate(zip(schema.returns, results, strict=False)):
        label = returned.name or f"result {number}"
        if returned.alias_of is not None:
            check_returned_argument(schema, number, value, arguments[returned.alias_of])
            continue
        for tensor in _tensors(value):
            for other, what in before:
                if tensor.untyped_storage()._cdata == other.untyped_storage()._cdata and (
                    tensor.dtype != other.dtype or not are_apart(layout_of(tensor), layout_of(other), bool)
                ):
                    raise AscendGraphError(
                        f"{schema.qualified_name}: {label} shares memory with {what}; expected memory of its own, which graphs take "
                        "for granted. Write: a clone() of what is returned, or Tensor(a!) for an argument that is written and "
                        "returned, on both sides of the schema"
                    )
            before.append((tensor, label))


def _tensors(value: Any) -> list[torch.Tensor]:
    """Return the tensors of an argument or result with memory: itself, or the elements of a list."""
    values = value if isinstance(value, list | tuple) else [value]
    return [t for t in values if isinstance(t, torch.Tensor) and t.layout == torch.strided]


def _imported(name: str, target: str) -> Callable[..., Any]:
    """Return the function that ``module:function`` names.

    Raises:
        BoundFunctionError: The module cannot be imported, or has no such function.
    """
    module, _, path = target.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part.removesuffix("()"))
            if part.endswith("()"):
                found = found()
    except (ImportError, AttributeError) as error:
        raise BoundFunctionError(
            f"{name}: {target} cannot be imported: {error}; expected the module that binds the function. "
            "Install the extension, or correct the text in define_from_function"
        ) from error
    if not callable(found):
        raise BoundFunctionError(f"{name}: {target} is {type(found).__name__}, and must be callable")
    return found  # type: ignore[no-any-return]
