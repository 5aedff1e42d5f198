"""Raw ops at run time: closures over a description that add one node to TorchAir's current GE graph.

Everything that depends on the op alone is computed once, when the raw op is made: the order of its arguments, the
setter of each attr, and a node that already holds the type, the defaults and the outputs. A call then copies that node
and fills in what differs.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes.model import OpPrototype, ParameterKind
from ascend_graph.raw_ops.attr_setters import SETTERS, RawOpError, torchair
from ascend_graph.raw_ops.description import RawOp, describe

RawOpFunction = Callable[..., Any]


class IncompatibleCannError(AscendGraphError, AssertionError):
    """Error of an installed CANN with an older definition of the op, which lacks an input or attr in use."""


class NodeStyle(enum.Enum):
    """Style of a node for omitted inputs and attrs; both occur in TorchAir's generated module."""

    #: Writes every attr and a placeholder for every absent optional input. The style of nearly all of TorchAir's.
    COMPLETE = "complete"
    #: Omits absent inputs and attrs equal to their default, so that a CANN which does not know them takes the node. If
    #: it lacks one in use, ``IncompatibleCannError`` is raised.
    COMPACT = "compact"


def make_raw_op(prototype: OpPrototype, style: NodeStyle = NodeStyle.COMPLETE) -> RawOpFunction:
    """Return the raw op of a prototype as a Python function.

    Its name, signature and documentation are those that ``ascend-graph gen raw-ops`` writes. Called inside a GE graph
    it adds one node and returns its outputs: one Tensor, a list for a dynamic output, a tuple of these for several
    outputs, None for none.

    Raises:
        RawOpError: torchair cannot be imported.
    """
    return _Builder(describe(prototype), style).function()


class _Builder:
    """Builder of one raw op, with its precomputed parts."""

    def __init__(self, description: RawOp, style: NodeStyle) -> None:
        pieces = torchair()
        self.description = description
        self.compact = style is NodeStyle.COMPACT
        self.ge = pieces.ge
        self.compat = pieces.compat
        self.invalid_desc = pieces.ge.get_invalid_desc()
        self.tensor_class = pieces.ge.Tensor
        self.is_plain = all(value.kind is ParameterKind.REQUIRED for value in description.inputs)
        self.input_names = [value.name for value in description.inputs]
        self.sizes = [output.size_argument for output in description.outputs]
        self.is_static = not any(self.sizes)
        self.single_output = self.is_static and len(self.sizes) == 1
        self.node_class = pieces.ir.OpDef
        self.setters = {attr.argument: (attr, SETTERS[attr.type]) for attr in description.attrs}
        self.defaults = {attr.argument: _normal(attr.default) for attr in description.attrs if not attr.required}

        self.template = pieces.ir.OpDef()
        self.template.type = description.op_type
        if not self.compact:
            for attr in description.attrs:
                if not attr.required:
                    self.set_attr(self.template, attr.argument, attr.default)
        if self.is_static:
            for output in description.outputs:
                self.template.output_desc.add().name = output.name

    def function(self) -> RawOpFunction:
        """Build the closure that is the raw op."""
        description, ge, tensor_class = self.description, self.ge, self.tensor_class
        count = len(description.inputs)
        kinds = [value.kind for value in description.inputs]
        is_plain = self.is_plain
        signature = _signature(description)
        keywords = {name for name, p in signature.parameters.items() if p.kind is inspect.Parameter.KEYWORD_ONLY}
        required = {name for name in keywords if signature.parameters[name].default is inspect.Parameter.empty}
        add_node = self.add_node
        get_default_ge_graph, set_extra_attrs = ge.get_default_ge_graph, ge._set_extral_node_attrs
        thread = ge.local_variable

        def plain(*args: Any, **kwargs: Any) -> Any:
            return add_node(get_default_ge_graph(), args, kwargs)

        plain.__name__ = plain.__qualname__ = description.function_name
        plain.__signature__ = signature  # type: ignore[attr-defined]
        converting = ge.auto_convert_to_tensor(
            [kind is ParameterKind.DYNAMIC for kind in kinds],
            [kind is ParameterKind.OPTIONAL for kind in kinds],
            inputs_tensor_type=[
                ge.TensorType.TT_INDEX_NUMBER if value.is_index else ge.TensorType.TT_UNKNOWN
                for value in description.inputs
            ],
        )(plain)

        def raw_op(*args: Any, **kwargs: Any) -> Any:
            if len(args) != count or not (required <= kwargs.keys() <= keywords):
                bound = signature.bind(*args, **kwargs)  # a TypeError as of any Python function
                args, kwargs = bound.args, bound.kwargs
            if is_plain:
                ready = all([isinstance(value, tensor_class) for value in args])  # noqa: C419 - a list is faster
            else:
                ready = all([_is_ready(value, kind, tensor_class) for value, kind in zip(args, kinds)])  # noqa: B905, C419
            if not ready:  # constants to make, or an error to raise
                depth = getattr(thread, "auto_convert_nesting", 0)
                try:
                    return converting(*args, **kwargs)
                except Exception:
                    thread.auto_convert_nesting = (
                        depth  # TorchAir leaves it counted: dumps of this thread would be empty
                    )
                    raise
            graph = get_default_ge_graph()
            outputs = add_node(graph, args, kwargs)
            if not getattr(thread, "auto_convert_nesting", 0):
                graph.add_python_code(args, kwargs, outputs, plain)
            set_extra_attrs(outputs)
            return outputs

        raw_op.__name__ = raw_op.__qualname__ = description.function_name
        raw_op.__module__ = "ascend_graph.raw_ops"
        raw_op.__doc__ = description.docstring
        raw_op.__signature__ = signature  # type: ignore[attr-defined]
        return raw_op

    def add_node(self, graph: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Add the node. It is built apart and added when complete, so a failure leaves the graph unchanged."""
        description = self.description
        producers, input_descs = self.inputs(args)
        dependencies = kwargs.get("dependencies") or ()
        controls = [dependency.controller for dependency in dependencies]
        if self.compact:
            self.check_cann(args, kwargs)
        made = self.node_class()
        made.CopyFrom(self.template)
        made.input.extend([*producers, *controls] if self.compact else [*controls, *producers])
        for input_name, desc in input_descs:
            added = made.input_desc.add()
            added.CopyFrom(desc)
            added.name = input_name
        for argument, value in kwargs.items():
            if argument in self.setters and not self.is_left_out(argument, value):
                self.set_attr(made, argument, value)
        if not self.is_static:
            self.add_output_descs(made, kwargs)
        subgraphs = self.subgraphs(kwargs) if description.graphs else []

        made.name = graph.next_unique_name(kwargs.get("node_name"), description.op_type)
        op = graph.op.add()
        op.CopyFrom(made)
        if subgraphs:
            self.add_subgraphs(graph, op, subgraphs)
        if self.single_output:
            return self.tensor_class(op, 0)
        return self.tensors(op, kwargs)

    def inputs(self, args: Sequence[Any]) -> tuple[list[str], list[tuple[str, Any]]]:
        """Return the producers of all inputs, and the name and description of each."""
        if self.is_plain:
            return (
                [value.tensor for value in args],
                [(name, value.desc) for name, value in zip(self.input_names, args)],  # noqa: B905
            )
        producers: list[str] = []
        descs: list[tuple[str, Any]] = []
        for raw_input, value in zip(self.description.inputs, args, strict=True):
            if raw_input.kind is ParameterKind.DYNAMIC:
                producers += [tensor.tensor for tensor in value]
                descs += [(f"{raw_input.name}{index}", tensor.desc) for index, tensor in enumerate(value)]
            elif value is not None:
                producers.append(value.tensor)
                descs.append((raw_input.name, value.desc))
            elif not self.compact:
                producers.append("")
                descs.append((raw_input.name, self.invalid_desc))
        return producers, descs

    def set_attr(self, op: Any, argument: str, value: Any) -> None:
        attr, setter = self.setters[argument]
        try:
            setter(op.attr[attr.name], attr, value)
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            if any(isinstance(v, self.tensor_class) for v in (value if isinstance(value, list | tuple) else (value,))):
                raise RawOpError(
                    f"{self.description.op_type}: {argument}={value!r} depends on a symbolic size, and an attr of a GE node is fixed "
                    "when the graph is compiled; expected a number. Compile with dynamic=False, or keep the size out of the symbolic ones"
                ) from error
            raise RawOpError(
                f"{self.description.op_type}: {argument}={value!r} must be a value of the attr type {attr.type.value} "
                f"({attr.field.annotation}): {error}"
            ) from error

    def is_left_out(self, argument: str, value: Any) -> bool:
        """Return whether a passed attr is not written: None stands for the default, as in TorchAir."""
        if argument not in self.defaults:
            return False
        return value is None or (self.compact and self.is_default(argument, value))

    def is_default(self, argument: str, value: Any) -> bool:
        default = self.defaults[argument]
        return type(default) in (type(_normal(value)), float) and bool(_normal(value) == default)

    def add_output_descs(self, op: Any, kwargs: dict[str, Any]) -> None:
        for output in self.description.outputs:
            if output.size_argument is None:
                op.output_desc.add().name = output.name
                continue
            size = kwargs[output.size_argument]
            if isinstance(size, bool) or not isinstance(size, int) or size < 0:
                raise RawOpError(
                    f"{self.description.op_type}: {output.size_argument}={size!r} must be the number of tensors of the "
                    f"output {output.name}, an int from 0"
                )
            for position in range(size):
                op.output_desc.add().name = f"{output.name}{position}"

    def tensors(self, op: Any, kwargs: dict[str, Any]) -> Any:
        """Return the node's outputs, grouped as the prototype has them."""
        index = 0
        outputs: list[Any] = []
        for size_argument in self.sizes:
            if size_argument is None:
                outputs.append(self.tensor_class(op, index))
                index += 1
            else:
                end = index + kwargs[size_argument]
                outputs.append([self.tensor_class(op, position) for position in range(index, end)])
                index = end
        if len(outputs) == 1:
            return outputs[0]
        return tuple(outputs) if outputs else None

    def check_cann(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Raise if the installed CANN does not know the optional inputs and attrs in use."""
        used_inputs = tuple(
            raw_input.name
            for raw_input, value in zip(self.description.inputs, args, strict=True)
            if raw_input.kind is ParameterKind.OPTIONAL and value is not None
        )
        used_attrs = tuple(
            attr.name
            for attr in self.description.attrs
            if attr.argument in kwargs
            and not attr.required
            and not self.is_left_out(attr.argument, kwargs[attr.argument])
        )
        problem = self.compat.is_cann_compat(self.description.op_type, used_inputs, used_attrs)
        if problem:
            raise IncompatibleCannError(problem)

    def subgraphs(self, kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
        """Return the subgraphs with the suffixes of their names."""
        found = []
        for raw_graph in self.description.graphs:
            value = kwargs[raw_graph.argument]
            for index, subgraph in enumerate(value if raw_graph.dynamic else [value]):
                if not isinstance(subgraph, self.ge.GeGraph):
                    raise RawOpError(
                        f"{self.description.op_type}: {raw_graph.argument} needs a GeGraph"
                        f"{' for each branch' if raw_graph.dynamic else ''}, not {type(subgraph).__name__}"
                    )
                found.append((f"{raw_graph.name}{index if raw_graph.dynamic else ''}", subgraph))
        return found

    def add_subgraphs(self, graph: Any, op: Any, subgraphs: list[tuple[str, Any]]) -> None:
        """Add subgraphs to the model; the node refers to them by name, in the order of the prototype."""
        for end, subgraph in subgraphs:
            name = f"{op.name}_{end}"
            op.subgraph_name.append(name)
            # The parts below the first are subgraphs of its own; they move along under a name that is theirs alone.
            parts = list(subgraph.model.graph)
            names = {part.name: f"{name}/{part.name}" for part in parts[1:]}
            for position, part in enumerate(parts):
                copy = graph.model.graph.add()
                copy.CopyFrom(part)
                copy.name = name if position == 0 else names[part.name]
                for node in copy.op:
                    for place, old in enumerate(node.subgraph_name):
                        node.subgraph_name[place] = names.get(old, old)


def _is_ready(value: Any, kind: ParameterKind, tensor_class: type) -> bool:
    if kind is ParameterKind.DYNAMIC:
        return isinstance(value, list | tuple) and all(isinstance(item, tensor_class) for item in value)
    return isinstance(value, tensor_class) or (value is None and kind is ParameterKind.OPTIONAL)


def _signature(description: RawOp) -> inspect.Signature:
    make = inspect.Parameter
    positional = [make(value.argument, make.POSITIONAL_OR_KEYWORD) for value in description.inputs]
    names = [output.size_argument for output in description.outputs if output.size_argument]
    names += [graph.argument for graph in description.graphs]
    names += [attr.argument for attr in description.attrs if attr.required]
    keyword = [make(name, make.KEYWORD_ONLY) for name in names]
    keyword += [
        make(attr.argument, make.KEYWORD_ONLY, default=attr.default) for attr in description.attrs if not attr.required
    ]
    keyword += [make("dependencies", make.KEYWORD_ONLY, default=()), make("node_name", make.KEYWORD_ONLY, default=None)]
    return inspect.Signature([*positional, *keyword])


def _normal(value: Any) -> Any:
    """Convert lists to tuples, so that a default is recognized in either form."""
    if isinstance(value, list | tuple):
        return tuple(_normal(item) for item in value)
    return value
