"""Table of host kernels for GE operators."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ascend_graph.environment import HostRuntimeError
from ascend_graph.host.kernels.input_shapes import documented_shapes
from ascend_graph.prototypes import Attr, UnknownPrototypeError, find_prototype
from ascend_graph.shapes import ShapeError, parse_relation

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class HostKernel:
    """GE operator as a function of CPU tensors.

    ``function`` takes the operator's inputs by position under GE's names and its attrs by keyword. An absent optional
    input is None, a dynamic one a list. It returns a tensor, or a tuple in the order of the outputs, a dynamic output
    as a list.
    """

    op_type: str
    function: Callable[..., Any]
    inputs: tuple[str, ...]
    attrs: frozenset[str]
    dynamic_inputs: frozenset[str] = frozenset()
    ignored_attrs: frozenset[str] = frozenset()
    takes_any_attr: bool = False
    #: Function for shapes and dtypes of the outputs without running ``function``: called like it, returns tensors of
    #: any contents.
    infer: Callable[..., Any] | None = None
    required_inputs: frozenset[str] = frozenset()
    required_attrs: frozenset[str] = frozenset()
    #: Inputs whose values the shapes of the outputs depend on: a static graph has them as constants.
    value_inputs: frozenset[str] = frozenset()
    #: Inputs whose values ``infer`` reads where a graph has them as constants.
    inferred_from: frozenset[str] = frozenset()
    #: Inputs that the operator writes to.
    written_inputs: frozenset[str] = frozenset()
    #: Written inputs that are also outputs: the output's index by input; for a dynamic input the first one's.
    references: Mapping[str, int] = field(default_factory=dict)
    #: Inputs that other outputs may be views of, or the same tensor. Outputs outside ``views`` and ``references`` are
    #: new memory.
    views: frozenset[str] = frozenset()
    #: Names of all outputs, if a call may return None for one: that output is absent, and no node reads it.
    optional_outputs: tuple[str, ...] = ()
    #: True if the shapes of the outputs depend on the values of any input.
    data_dependent: bool = False
    #: Names of the inputs in other versions of the prototype.
    other_inputs: tuple[tuple[str, ...], ...] = ()
    #: True if only the shapes and dtypes of the inputs matter, as in Shape.
    shapes_only: bool = False
    #: True if other processes take part: only runs of a graph call it with data.
    communicates: bool = False
    #: True if equal inputs give equal outputs without side effects: a node whose inputs are constants is computed once.
    pure: bool = False
    #: Shape relation of the inputs, without outputs; empty if documents do not give one.
    shapes: str = ""
    #: Default values of the attrs that a node may leave out.
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def bind_attrs(self, attrs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the attrs to call ``function`` with.

        Raises:
            HostRuntimeError: the node lacks an attr without a default, here or in the prototype, or has one that this
                kernel does not know: ignoring it could compute something else.
        """
        bound = {name: value for name, value in attrs.items() if name not in self.ignored_attrs}
        unknown = [] if self.takes_any_attr else sorted(set(bound) - self.attrs)
        if unknown:
            shown = ", ".join(f"{name}={bound[name]!r}" for name in unknown)
            raise HostRuntimeError(
                f"{self.op_type}: the host kernel does not know attr {shown}; it knows: {', '.join(sorted(self.attrs)) or 'none'}"
            )
        missing = sorted(self.required_attrs - set(bound))
        declared = prototype_attrs(self.op_type) if missing else {}
        for name in missing:
            if name not in declared or declared[name].required or not declared[name].default_known:
                raise HostRuntimeError(f"{self.op_type}: required attr {name} is not set on the node")
            bound[name] = declared[name].held_default
        return bound

    def attrs_among_inputs(self, missing: Sequence[str]) -> str:
        """Return what to write if inputs that a node lacks are attrs of the prototype, or an empty text."""
        attrs = [name for name in missing if name in prototype_attrs(self.op_type)]
        taken = ", ".join([*(name for name in self.inputs if name not in attrs), "*", *attrs])
        return f"; {attrs[0]} is an attr, which the host kernel takes behind '*': write ({taken})" if attrs else ""

    def check_shapes(self, arguments: Sequence[Any], attrs: Mapping[str, Any]) -> None:
        """Check the shapes and dtypes of the inputs against the documents.

        Args:
            arguments: the positional arguments of ``function``; a tensor's data is not read.
            attrs: the result of ``bind_attrs``.

        Raises:
            HostRuntimeError: an input has another shape or dtype.
        """
        if not self.shapes:
            return
        relation = parse_relation(self.shapes)
        named = set(relation.inputs)
        given = {
            name: value
            for name, value in zip(self.inputs, arguments, strict=False)
            if name in named and (name in self.required_inputs or not _is_empty(value))
        }
        shapes = {name: _of_tensors(value, lambda t: tuple(t.shape)) for name, value in given.items()}
        dtypes = {
            name: _of_tensors(value, lambda t: str(t.dtype).removeprefix("torch.")) for name, value in given.items()
        }
        try:
            relation.infer(shapes, dtypes, {**self.defaults, **attrs})
        except ShapeError as error:
            whole = f"; expected {relation}" if "must hold" in str(error) else ""  # else an input is named
            raise HostRuntimeError(f"{error}{whole}") from error

    def slots_of(self, sources: Sequence[int | tuple[int, ...]], names: frozenset[str]) -> list[int]:
        """Return the values of the named inputs, given values per input; a dynamic input has a tuple."""
        found: list[int] = []
        for name, source in zip(self.inputs, sources, strict=True):
            if name in names:
                found += source if isinstance(source, tuple) else (source,)
        return found

    def referenced(self, counts: Iterable[int]) -> dict[int, tuple[int, int]]:
        """Return, by output index, the input that the output refers to: its index and the one in its list.

        ``counts`` are the lengths of the inputs' lists.
        """
        return {
            self.references[name] + item: (position, item)
            for position, (name, count) in enumerate(zip(self.inputs, counts, strict=True))
            if name in self.references
            for item in range(count)
        }


def prototype_attrs(op_type: str) -> dict[str, Attr]:
    """Return the attrs of a loaded or installed prototype by name; none if there is no such prototype."""
    try:
        return {attr.name: attr for attr in find_prototype(op_type).attrs}
    except UnknownPrototypeError:
        return {}


_KERNELS: dict[str, HostKernel] = {}


def host_kernel(
    *op_types: str,
    dynamic: tuple[str, ...] = (),
    ignores: tuple[str, ...] = (),
    values: tuple[str, ...] = (),
    writes: Sequence[str] | Mapping[str, int] = (),
    views: tuple[str, ...] = (),
    data_dependent: bool = False,
    shapes_only: bool = False,
    other_inputs: Sequence[Sequence[str]] = (),
    communicates: bool = False,
    infer: Callable[..., Any] | None = None,
) -> Callable[[F], F]:
    """Register a function as the host kernel of GE operators.

    Args:
        op_types: the GE operators it implements.
        dynamic: inputs that are lists.
        ignores: attrs that do not change the result on a host.
        values: inputs whose values the shapes of the outputs depend on, as in Reshape.
        writes: inputs that are written to, as in Assign, and the outputs that they are; without numbers the first ones.
        views: inputs that outputs may share memory with, as in Reshape. Every other output is new memory.
        data_dependent: whether the shapes of the outputs depend on values of any input, as in NonZero.
        shapes_only: whether only the shapes and dtypes of the inputs matter, as in Shape.
        other_inputs: names that other versions of the prototype have for the inputs, all of them in order.
        communicates: whether other processes take part, so that it runs with every run of a graph, and not to infer
            shapes.
        infer: a function that gives the shapes and dtypes of the outputs, if ``function`` does not on meta tensors.

    The function's positional parameters are GE's input names; those with a default are optional. A trailing underscore
    is dropped: ``from_``. Its keyword-only parameters are the attrs; one without a default has the prototype's, and
    ``**attrs`` takes any other.
    It must be a function of its arguments alone, and work on meta tensors except for the inputs in ``values``.

    Raises:
        HostRuntimeError: an operator has a kernel already, an option does not name a parameter, or an input has a
            default other than None, which an absent input is.
    """

    def register(function: F) -> F:
        parameters = inspect.signature(function).parameters.values()
        positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        inputs = tuple(p.name.rstrip("_") for p in positional)
        keywords = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
        strangers = {*dynamic, *values, *writes, *views} - set(inputs)
        if strangers:
            raise HostRuntimeError(
                f"{op_types[0]}: {', '.join(sorted(strangers))} is not an input; the inputs are: {', '.join(inputs)}"
            )
        numbers = [p for p in positional if p.default not in (p.empty, None, ())]
        if numbers:
            shown = ", ".join(map(str, numbers))
            raise HostRuntimeError(
                f"{op_types[0]}: {shown} stands among the inputs of the host kernel, and an input that is absent is None; "
                f"write it behind '*' as an attr: ({', '.join([*inputs[: len(inputs) - len(numbers)], '*', shown])})"
            )
        for op_type in op_types:
            _add(
                HostKernel(
                    op_type=op_type,
                    function=function,
                    inputs=inputs,
                    attrs=frozenset(p.name for p in keywords),
                    dynamic_inputs=frozenset(dynamic),
                    ignored_attrs=frozenset(ignores),
                    takes_any_attr=any(p.kind is p.VAR_KEYWORD for p in parameters),
                    required_inputs=frozenset(p.name.rstrip("_") for p in positional if p.default is p.empty),
                    required_attrs=frozenset(p.name for p in keywords if p.default is p.empty),
                    value_inputs=frozenset(values),
                    written_inputs=frozenset(writes),
                    references=writes if isinstance(writes, Mapping) else {name: i for i, name in enumerate(writes)},
                    views=frozenset(views),
                    data_dependent=data_dependent,
                    shapes_only=shapes_only,
                    other_inputs=tuple(map(tuple, other_inputs)),
                    communicates=communicates,
                    infer=infer,
                    pure=not writes and not communicates,
                    shapes=documented_shapes().get(op_type, ""),
                    defaults={p.name: p.default for p in keywords if p.default is not p.empty},
                )
            )
        return function

    return register


def plain_kernels(inputs: Sequence[str], functions: Mapping[str, Callable[..., Any]]) -> None:
    """Register functions of tensors alone, such as PyTorch's own, by GE operator.

    Args:
        inputs: GE's names of the inputs, the same for all.
        functions: by GE operator; called with the inputs by position.

    Raises:
        HostRuntimeError: an operator has a kernel already.
    """
    for op_type, function in functions.items():
        _add(HostKernel(op_type, function, tuple(inputs), frozenset(), required_inputs=frozenset(inputs), pure=True))


def _add(kernel: HostKernel) -> None:
    known = _KERNELS.get(kernel.op_type)
    if known is not None:
        name = getattr(known.function, "__qualname__", repr(known.function))
        raise HostRuntimeError(f"{kernel.op_type} has a host kernel already: {name}; register each operator once")
    _KERNELS[kernel.op_type] = kernel


def flat_results(results: Any) -> list[Any]:
    """Return a kernel's results in one list, with the tensors of dynamic outputs flattened into it."""
    if results is None:
        return []
    if not isinstance(results, (tuple, list)):
        return [results]
    return [item for result in results for item in (result if isinstance(result, (list, tuple)) else (result,))]


def _is_empty(value: Any) -> bool:
    """Return whether a value is a tensor without elements, which stands for an absent optional input."""
    return value is not None and not isinstance(value, list) and value.numel() == 0


def _of_tensors(value: Any, read: Callable[[Any], Any]) -> Any:
    """Apply ``read`` to a tensor, or to each in a list; None stays None."""
    if isinstance(value, list):
        return [_of_tensors(item, read) for item in value]
    return None if value is None else read(value)


def find_host_kernel(op_type: str) -> HostKernel | None:
    """Return the built-in host kernel of a GE operator, or None."""
    return _KERNELS.get(op_type)


def host_kernels() -> Mapping[str, HostKernel]:
    """Return all built-in host kernels by GE operator."""
    return _KERNELS
