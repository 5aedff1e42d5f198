"""Conversion of calls that write for GE graphs, where TorchAir's conversion is wrong, for registered operators.

TorchAir returns one value for each written argument, but PyTorch expects one for each memory (*base*) that is written
to. It supports neither lists nor absent arguments. It also cuts views out of a base by the base's strides in PyTorch,
but GE holds the base contiguously. Calls that TorchAir converts correctly are left to it.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from types import ModuleType
from typing import Any

import torch

from ascend_graph.dispatch.torchair import register_converter, torchair
from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes import DataType
from ascend_graph.registration.conversion.node_outputs import ConversionError
from ascend_graph.registration.writing.layouts import Layout, are_apart, compact_strides, in_compact, layout_of
from ascend_graph.registration.writing.mutation import is_ours, offsets_of_views, read_views, written_arguments

_MODULE = "torchair._ge_concrete_graph.auto_functionalized_v2"
_FUNCTION = "conveter_auto_functionalize_v2"  # so it is spelled there
#: Names of the module that are used here.
_PIECES = (_FUNCTION, "ControlTensor", "force_op_unknown_shape", "is_host_data_tensor")
_MARK = "_ascend_graph_converter"
#: GE functions for symbolic sizes, by name of the SymPy or PyTorch function.
_ARITHMETIC = {
    "Add": "Add", "Mul": "Mul", "Pow": "Pow", "FloorDiv": "FloorDiv", "Mod": "FloorMod", "PythonMod": "FloorMod",
    "Max": "Maximum", "Min": "Minimum",
}  # fmt: skip


class UnknownConversionError(AscendGraphError):
    """Error of a TorchAir without the functions that convert operators that write to arguments."""


_library = torch.library.Library("ascend_graph", "FRAGMENT")
_library.define("own_copy(Tensor x) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))
_library.impl("own_copy", torch.clone, "CompositeExplicitAutograd")


@functools.lru_cache(maxsize=1)
def own_copy() -> Any:
    """Return the operator that copies a tensor in GE graphs: TorchAir's passes drop ``clone``."""
    overload = torch.ops.ascend_graph.own_copy.default
    register_converter(overload, torchair().raw.TensorMove, own=True)
    return overload


def install() -> None:
    """Convert nodes of registered operators here if TorchAir's conversion is wrong. A second call does nothing.

    Raises:
        UnknownConversionError: TorchAir converts such nodes in an unknown way.
    """
    module = importlib.import_module(_MODULE)
    lacking = [name for name in _PIECES if not hasattr(module, name)]
    if lacking:
        raise UnknownConversionError(
            f"{_MODULE}: lacks {', '.join(lacking)}; expected TorchAir of a torch_npu that was tested (docs/versions.md). Operators "
            "that write to arguments cannot be converted for GE with this one"
        )
    original = getattr(module, _FUNCTION)
    if hasattr(original, _MARK):
        return

    @functools.wraps(original)
    def convert(*args: Any, **kwargs: Any) -> Any:
        if args and is_ours(args[0]) and not kwargs.get("_conveter_auto_functionalize_v2_internal_mock"):
            call = _read(args[0], kwargs)
            call.refuse_repeated_elements()
            if not call.is_for_torchair():
                return _Converter(module, call, kwargs.get("symbol_input_map", {})).convert()
        return original(*args, **kwargs)

    setattr(convert, _MARK, True)
    setattr(module, _FUNCTION, convert)


# ------------------------------------------------------------------------------------------------------- what is written


@dataclass(frozen=True, slots=True)
class _Written:
    """Tensor that a call writes to: a view of a base, or the base."""

    argument: str
    #: Position in a list; None for an argument that is a tensor.
    item: int | None
    base: int
    #: Tensor as PyTorch has it.
    meta: Any

    @property
    def name(self) -> str:
        return self.argument if self.item is None else f"{self.argument}[{self.item}]"


@dataclass(frozen=True, slots=True)
class _Call:
    """Call that writes, as its node describes it."""

    operator: Any
    #: Arguments that are read.
    read: Mapping[str, Any]
    bases: Sequence[Any]
    #: Written tensors by argument: a tensor, a list of tensors and None, or None.
    written: Mapping[str, Any]

    def tensors(self) -> Iterator[_Written]:
        """Yield every written tensor."""
        for value in self.written.values():
            for item in value if isinstance(value, list) else (value,):
                if item is not None:
                    yield item

    def refuse_repeated_elements(self) -> None:
        """Refuse a written tensor whose elements are one in memory, as those of ``x.expand(4, 3)``.

        Raises:
            ConversionError: Such a tensor is written.
        """
        for tensor in self.tensors():
            layout = layout_of(tensor.meta)
            if any(_known(step == 0) and _known(n > 1) for n, step in zip(layout.size, layout.stride, strict=True)):
                raise ConversionError(
                    f"{self.operator.name()}: {tensor.name} is written and has sizes {list(layout.size)} and strides {list(layout.stride)}, "
                    f"so that several of its elements are one in memory; expected elements apart from each other. Write: {tensor.name}.contiguous()"
                )

    def is_for_torchair(self) -> bool:
        """Return whether TorchAir converts the node correctly."""
        tensors = list(self.tensors())
        if any(not isinstance(value, _Written) for value in self.written.values()):
            return False
        if [t.base for t in tensors] != list(range(len(self.bases))):
            return False
        views = [t for t in tensors if not self.is_base(t)]
        return all(_is_compact(self.bases[t.base].meta) and _is_parsed(layout_of(t.meta)) for t in views)

    def is_base(self, tensor: _Written) -> bool:
        """Return whether a tensor covers its whole base."""
        return _same(layout_of(tensor.meta), layout_of(self.bases[tensor.base].meta))


def _is_parsed(layout: Layout) -> bool:
    """Return whether TorchAir's parser knows the functions in symbolic sizes, strides and offset; it lacks ``//``."""

    def known(expression: Any) -> bool:
        if expression.func.__name__ in ("Add", "Mul", "Pow"):
            return all(map(known, expression.args))
        return bool(expression.is_Integer or expression.is_Symbol)

    values = (*layout.size, *layout.stride, layout.offset)
    return all(isinstance(value, int) or known(value.node.expr) for value in values)


def _read(operator: Any, kwargs: Mapping[str, Any]) -> _Call:
    bases = list(kwargs.get("_all_bases", ()))
    metas = [base.meta for base in bases]
    values = {name: value for name, value in kwargs.items() if name not in ("_all_bases", "symbol_input_map")}
    written = written_arguments(operator._schema)
    # What says which views are written is taken out of the values; sizes that are tensors of GE know what they are in PyTorch.
    symbolic = {name: _in_pytorch(value) if name.startswith("_") else value for name, value in values.items()}
    for name, base in offsets_of_views(
        symbolic
    ).items():  # counted from the base, which has another offset than in the trace
        symbolic[name] += metas[base].storage_offset()
    views = read_views(written, symbolic, metas)

    def one(argument: str, item: int | None, view: Any) -> _Written | None:
        return None if view is None else _Written(argument, item, view.base_index, view.regenerate_view(metas))

    found = {
        name: [one(name, n, item) for n, item in enumerate(view)] if isinstance(view, list) else one(name, None, view)
        for name, view in views.items()
    }
    return _Call(operator, {name: values[name] for name in symbolic}, bases, found)


def _in_pytorch(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_in_pytorch(item) for item in value]
    return value.meta if isinstance(value, torchair().ge.Tensor) else value


def _known(condition: Any) -> bool:
    """Return whether a condition over sizes holds for this graph, and guard on the answer."""
    from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    try:
        return bool(condition)
    except GuardOnDataDependentSymNode:
        return False


def _given(value: Any, given: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_given(item, given) for item in value]
    return None if value is None else given[value.name]


def _same(a: Layout, b: Layout) -> bool:
    return len(a.size) == len(b.size) and all(
        _known(one == other)
        for one, other in zip((*a.size, *a.stride, a.offset), (*b.size, *b.stride, b.offset), strict=True)
    )


def _is_compact(tensor: Any) -> bool:
    layout = layout_of(tensor)
    empty = any(_known(n == 0) for n in layout.size)  # whatever its strides, it has no elements that they could skip
    return empty or _same(layout, Layout(layout.size, compact_strides(layout.size), 0))


# ------------------------------------------------------------------------------------------------------------ conversion


class _Converter:
    """Conversion of one node."""

    def __init__(self, module: ModuleType, call: _Call, symbols: Mapping[Any, Any]) -> None:
        pieces = torchair()
        self.module, self.call, self.symbols = module, call, symbols
        self.ge, self.raw, self.fx = pieces.ge, pieces.raw, pieces.fx
        self.subject = call.operator.name()

    def convert(self) -> tuple[Any, ...]:
        """Add the nodes, and return the operator's outputs and the bases' new values."""
        call = self.call
        self.refuse_overlap()
        layouts = {tensor.name: self.compact(tensor) for tensor in call.tensors()}
        bases = []
        for base in call.bases:
            bases.append(self.raw.TensorMove(base))
            bases[-1].set_meta(base.meta)
        given = {tensor.name: self.view(bases, tensor, layouts[tensor.name]) for tensor in call.tensors()}
        graph = self.ge.get_default_ge_graph()
        first = len(graph.op)
        made = self.fx.get_or_auto_gen_converter(call.operator)(**call.read, **self.arguments(given))
        added = graph.op[first:]
        for tensor in call.tensors():
            value = self.written(given[tensor.name], added)
            layout = layouts[tensor.name]
            bases[tensor.base] = value if layout is None else self.put(bases[tensor.base], value, layout)
        return (*(made if isinstance(made, tuple) else (made,)), *bases)

    def refuse_overlap(self) -> None:
        """Refuse written tensors that overlap: GE gives each input memory of its own.

        Raises:
            ConversionError: Two written tensors share elements, or may share some.
        """
        for a, b in combinations(self.call.tensors(), 2):
            if a.base == b.base and not are_apart(layout_of(a.meta), layout_of(b.meta), _known):
                raise ConversionError(
                    f"{self.subject}: {a.name} and {b.name} are written and overlap in memory, and GE gives each input memory of its "
                    f"own; expected written arguments without a common element. Write: {b.name}.clone(), and copy_ its elements back "
                    'where they are wanted; or compile with backend="npugraph_ex"'
                )

    def compact(self, tensor: _Written) -> Layout | None:
        """Return the layout of a written tensor in its base as GE holds it; None if it is the base.

        Raises:
            ConversionError: It is not a regular part of its base.
        """
        base = self.call.bases[tensor.base].meta
        if self.call.is_base(tensor):
            return None
        if _is_compact(base):
            return layout_of(tensor.meta)
        found = in_compact(layout_of(base), layout_of(tensor.meta), _known)
        if found is None:
            raise ConversionError(
                f"{self.subject}: {tensor.name} has sizes {list(tensor.meta.size())} and strides {list(tensor.meta.stride())} and is a "
                f"view of a tensor with sizes {list(base.size())} and strides {list(base.stride())}, in which GE has no such view; "
                f"expected a view of a contiguous tensor. Write: {tensor.name}.clone(), and copy_ it back; or compile with "
                'backend="npugraph_ex"'
            )
        return found

    def view(self, bases: Sequence[Any], tensor: _Written, layout: Layout | None) -> Any:
        """Return a written tensor as GE's node takes it."""
        if layout is None:
            return bases[tensor.base]
        view = self.raw.AsStrided(bases[tensor.base], *self.places(layout))
        view.set_meta(tensor.meta)
        return view

    def places(self, layout: Layout) -> tuple[Any, Any, Any]:
        """Return size, stride and offset as GE takes them."""
        return self.sizes(layout.size), self.sizes(layout.stride), self.number(layout.offset)

    def sizes(self, values: Sequence[Any]) -> Any:
        """Return a list of integers, or the tensor that GE computes from symbolic ones."""
        if all(isinstance(value, int) for value in values):
            return list(values)
        numbers = [self.ge.Const(v, dtype=DataType.INT64) if isinstance(v, int) else self.number(v) for v in values]
        packed = self.raw.Pack(numbers, N=len(numbers), axis=0)
        packed.set_meta(list(values))
        if all(map(self.module.is_host_data_tensor, numbers)):
            packed.node.attr["_inputs_all_sym"].b = True
        return self.module.force_op_unknown_shape(packed)

    def number(self, value: Any) -> Any:
        """Return an integer, or the tensor that GE computes from a symbolic one."""
        return value if isinstance(value, int) else self.computed(value.node.expr)

    def computed(self, expression: Any) -> Any:
        """Return GE's tensor of an expression of symbols.

        Raises:
            ConversionError: The expression has an unknown function.
        """
        if expression.is_Integer:
            return self.ge.Const(int(expression), dtype=DataType.INT64)
        if expression.is_Symbol and expression.name in self.symbols:
            return self.symbols[expression.name]
        function = _ARITHMETIC.get(expression.func.__name__)
        if function is None:
            raise ConversionError(
                f"{self.subject}: {expression} is a size or an offset of what it writes; expected one of {', '.join(_ARITHMETIC)} of "
                "sizes of the graph's inputs. Write: torch.compile(…, dynamic=False)"
            )
        return reduce(getattr(self.raw, function), map(self.computed, expression.args))

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the written arguments by name, as the operator's converter takes them."""
        return {name: _given(value, given) for name, value in self.call.written.items()}

    def written(self, tensor: Any, added: Sequence[Any]) -> Any:
        """Return a tensor's value after the nodes that write to it: an output of the input's name, or a later copy."""
        readers = [op for op in added if tensor.tensor in op.input]
        for op in reversed(readers):
            name = op.input_desc[list(op.input).index(tensor.tensor)].name
            for index, output in enumerate(op.output_desc):
                if output.name == name:
                    return self.ge.Tensor(op, index)
        return self.raw.Identity(tensor, dependencies=[self.module.ControlTensor(op) for op in readers])

    def put(self, base: Any, value: Any, layout: Layout) -> Any:
        """Return a base with a part of it replaced."""
        size, stride, offset = self.places(layout)
        return self.raw.ViewCopy(base, size, stride, offset, value, size, self.sizes(compact_strides(layout.size)), 0)
