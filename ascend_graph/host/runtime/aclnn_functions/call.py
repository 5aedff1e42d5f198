"""Calls of aclnn functions: the first half checks and binds the arguments, the second runs the kernel and writes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from operator import itemgetter
from typing import Any

import torch

from ascend_graph.environment import HostRuntimeError
from ascend_graph.host.dtypes import INT4, ge_dtype
from ascend_graph.host.kernels import HostKernel, find_host_kernel
from ascend_graph.host.kernels.quantization.four_bits import packed
from ascend_graph.host.runtime.aclnn_functions.blocks import FORMATS, blocked_in, like, ordered
from ascend_graph.host.runtime.aclnn_functions.dtypes import documented_dtypes
from ascend_graph.host.runtime.aclnn_functions.table import Function, OutputParameter, functions
from ascend_graph.host.runtime.aclnn_functions.unsupported_socs import check_format, check_function
from ascend_graph.host.runtime.aclnn_functions.values import (
    IN_BLOCKS,
    as_input,
    as_list,
    is_absent,
    is_int4,
    listed,
    shape_signature,
    without_data,
)
from ascend_graph.host.runtime.engine.model import error_text
from ascend_graph.prototypes import DataType

T = torch.Tensor
_MOST_ACCEPTED = 4096
Reader = Callable[[Mapping[str, Any]], Any]


class NullParameterError(HostRuntimeError):
    """Error for a null parameter of an aclnn function that must not be null."""

    acl_code = 161001  # ACLNN_ERR_PARAM_NULLPTR


def prepare(name: str, arguments: Sequence[Any]) -> Callable[[], None]:
    """Check the arguments of aclnn``name`` and return a function that runs it, any number of times.

    Args:
        name: the function's, without ``aclnn``.
        arguments: in the order of its parameters; CPU tensors for aclTensor.

    Raises:
        NullParameterError: a parameter is null that must not be.
        HostRuntimeError: an output does not fit the kernel's result, or the kernel does not support the arguments.
    """
    return _bound(name).prepared(arguments)


@cache
def _bound(name: str) -> _Bound:
    function = functions()[name]
    check_function(function.symbol)
    kernel = find_host_kernel(function.op_type)
    if kernel is None:
        raise HostRuntimeError(
            f"{function.symbol}: the host runtime has no kernel for {function.op_type}; load an operator package that "
            "has it"
        )
    return _Bound.of(function, _of_package(function, kernel) or kernel)


def _of_package(function: Function, kernel: HostKernel) -> HostKernel | None:
    """Return an installed package's kernel for the operator, or None.

    CANN's function launches an operator by its type, so the package's replaces the built-in one.

    Raises:
        HostRuntimeError: its prototype lacks inputs or attrs that the function passes.
    """
    from ascend_graph.host.packages.load import find_package_kernel

    found = find_package_kernel(function.op_type)
    if found is None:
        return None
    given = kernel.inputs[: len(function.inputs)]
    if lacking := sorted({*given, *function.attrs} - {*found.inputs, *found.attrs}):
        raise HostRuntimeError(
            f"{function.symbol}: an installed operator package replaces {function.op_type} by one without "
            f"{', '.join(lacking)}, which this "
            "function gives it; give the package's prototype CANN's inputs and attrs, or the operator another name"
        )
    order = (*given, *(name for name in found.inputs if name not in given))

    def in_order(call: Callable[..., Any]) -> Callable[..., Any]:
        places = [order.index(name) for name in found.inputs]
        return lambda *inputs, **attrs: tuple(call(*(inputs[place] for place in places), **attrs))

    infer = None if found.infer is None else in_order(found.infer)
    # A kernel of which nothing tells the shapes may need its data for them.
    return replace(found, function=in_order(found.function), infer=infer, inputs=order, data_dependent=infer is None)


@dataclass(frozen=True, slots=True)
class _Accepted:
    """Facts about calls that were found to fit, and differ only in the contents of their tensors."""

    attrs: Mapping[str, Any]
    #: Positions of the kernel's inputs among the arguments, and the number and the position of each written result.
    #: None if arguments are not the kernel's inputs unchanged, or if only computing shows which results are written.
    places: tuple[tuple[int | None, ...], tuple[tuple[int, int], ...]] | None


@dataclass(frozen=True, slots=True)
class _Bound:
    """Function bound to its kernel."""

    function: Function
    kernel: HostKernel
    parameters: tuple[str, ...]
    #: Reader of each of the kernel's inputs from a call, its text if the input is required, and whether it is a list.
    inputs: tuple[tuple[Reader | None, str, bool], ...]
    attrs: tuple[tuple[str, Reader], ...]
    #: Positions of these inputs among the parameters; None if computed from them, -1 if absent.
    places: tuple[int | None, ...]
    #: Calls that were found to fit, by the facts about their arguments other than contents.
    accepted: dict[Any, _Accepted] = field(default_factory=dict)

    @classmethod
    def of(cls, function: Function, kernel: HostKernel) -> _Bound:
        """Bind a function to its kernel, with everything known before there are arguments."""
        parameters = tuple(p.name for p in function.parameters)
        inputs: list[tuple[Reader | None, str, bool]] = []
        places: list[int | None] = []
        for position, input_ in enumerate(kernel.inputs):
            given = function.inputs[position] if position < len(function.inputs) else None
            text = "" if given is None or input_ not in kernel.required_inputs else ast.unparse(given)
            inputs.append((None if given is None else _reader(given), text, input_ in kernel.dynamic_inputs))
            named = parameters.index(given.id) if isinstance(given, ast.Name) else None
            places.append(-1 if given is None else named)
        attrs = tuple((attr, _reader(expression)) for attr, expression in function.attrs.items())
        return cls(function, kernel, parameters, tuple(inputs), attrs, tuple(places))

    def prepared(self, arguments: Sequence[Any]) -> Callable[[], None]:
        """Return a function that runs a call; the call is checked unless one like it was."""
        key = tuple(map(shape_signature, arguments))
        accepted = self.accepted.get(key)
        if accepted is not None and accepted.places is not None:
            return self._direct(arguments, accepted.attrs, *accepted.places)
        if accepted is None and any(part is IN_BLOCKS for part in key):
            return self._of_blocks(arguments)
        call = self._call(arguments, accepted)
        if accepted is None:
            accepted = _Accepted(call.attrs, call.check())
            if len(self.accepted) == _MOST_ACCEPTED:
                self.accepted.clear()
            self.accepted[key] = accepted
        return call.run

    def _of_blocks(self, arguments: Sequence[Any]) -> Callable[[], None]:
        """Return a function that runs a call with tensors in blocks, which it reads again on every run."""
        taken = {p.name for p in self.function.parameters if p.in_blocks}
        for name, argument in zip(self.parameters, arguments, strict=True):
            for tensor in blocked_in(argument):
                if name not in taken or tensor.format not in FORMATS:
                    raise HostRuntimeError(
                        f"{self.function.symbol}: {name} has the format {FORMATS.get(tensor.format, tensor.format)}; "
                        "expected "
                        f"ACL_FORMAT_ND (2){' and FRACTAL_NZ (29)' if name in taken else ''}. Cast it with "
                        "torch_npu.npu_format_cast"
                    )
        self.prepared([like(argument) for argument in arguments])  # what does not fit is refused now

        def run() -> None:
            self.prepared([ordered(argument) for argument in arguments])()

        return run

    def _direct(
        self,
        arguments: Sequence[Any],
        attrs: Mapping[str, Any],
        inputs: Sequence[int | None],
        written: Sequence[tuple[int, int]],
    ) -> Callable[[], None]:
        """Return a function that runs a call like one that was checked: the path of most calls.

        Its arguments are the kernel's inputs unchanged.
        """
        function = self.kernel.function
        given = [None if place is None else arguments[place] for place in inputs]

        def run() -> None:
            try:
                results = function(*given, **attrs)
            except Exception as error:  # whatever PyTorch or a kernel says of what they do not support
                raise self.failed(error) from error
            if not isinstance(results, tuple):
                results = (results,)
            for number, place in written:  # all fit, or nothing is written
                result, target = results[number], arguments[place]
                if result.shape != target.shape or result.dtype != target.dtype:
                    raise self.misfit(self.parameters[place], target, result)
            for number, place in written:
                arguments[place].copy_(results[number])

        return run

    def failed(self, error: Exception) -> HostRuntimeError:
        """Return the error for an exception of the kernel."""
        return HostRuntimeError(f"{self.function.symbol}: {error_text(error)}")

    def misfit(self, name: str, target: T, result: T) -> HostRuntimeError:
        """Return the error for a caller's tensor that does not fit its result."""
        return HostRuntimeError(
            f"{self.function.symbol}: {name} is {target.dtype} of shape {tuple(target.shape)}; "
            f"the operator computes {result.dtype} of shape {tuple(result.shape)}"
        )

    def _call(self, arguments: Sequence[Any], accepted: _Accepted | None) -> _Call:
        values = dict(zip(self.parameters, arguments, strict=True))
        if accepted is not None:
            attrs = accepted.attrs
        else:
            self._check_presence(values)
            self._check_formats(values)
            self._check_dtypes(values)
            attrs = self.kernel.bind_attrs(
                {name: value for name, reader in self.attrs if (value := reader(values)) is not None}
            )
        inputs = []
        for reader, _, is_list in self.inputs:
            given = None if reader is None else reader(values)
            inputs.append(as_list(given) if is_list else as_input(given, self.function.symbol))
        return _Call(self, inputs, attrs, values)

    def _check_presence(self, values: Mapping[str, Any]) -> None:
        for name in self.function.absent:
            if not is_absent(values[name]):
                raise HostRuntimeError(f"{self.function.symbol}: {name} is not supported on the host; null, and 0, are")
        inputs = (text for reader, text, _ in self.inputs if text and reader is not None and reader(values) is None)
        attrs = (
            ast.unparse(self.function.attrs[name])
            for name, reader in self.attrs
            if name in self.kernel.required_attrs and reader(values) is None
        )
        outputs = (o.name for o in self.function.outputs if o.name and not o.optional and values[o.name] is None)
        if null := next(chain(inputs, attrs, outputs), None):
            raise NullParameterError(f"{self.function.symbol}: {null} must not be null")

    def _check_formats(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            for tensor in listed(value):
                if isinstance(tensor, T) and tensor.numel():
                    check_format(self.function.symbol, name, _dtype_of(tensor) or 0)

    def _check_dtypes(self, values: Mapping[str, Any]) -> None:
        for name, valid in documented_dtypes().get(self.function.symbol, {}).items():
            for tensor in listed(values[name]):
                dtype = _dtype_of(tensor) if isinstance(tensor, T) and tensor.numel() else None
                if dtype is not None and dtype not in valid:
                    known = ", ".join(DataType(d).name for d in sorted(valid))
                    raise HostRuntimeError(
                        f"{self.function.symbol}: {name} is {DataType(dtype).name}; expected {known}"
                    )


@dataclass(frozen=True, slots=True)
class _Call:
    """Call of a function with its arguments."""

    bound: _Bound
    inputs: list[Any]
    attrs: Mapping[str, Any]
    values: Mapping[str, Any]

    def check(self) -> tuple[tuple[int | None, ...], tuple[tuple[int, int], ...]] | None:
        """Check the shapes against the kernel's, and run it on tensors without data; return ``_Accepted.places``."""
        kernel = self.bound.kernel
        try:
            kernel.check_shapes(self.inputs, self.attrs)
        except HostRuntimeError as error:
            raise HostRuntimeError(f"{self.bound.function.symbol}: {error}") from error
        if kernel.data_dependent or kernel.value_inputs:
            return None
        written = self._written(self._results(kernel.infer or kernel.function, map(without_data, self.inputs)))
        for _, output, target, result in written:
            self._check_fit(output, target, result)
        return self._places(written)

    def _places(
        self, written: Sequence[tuple[int, OutputParameter, Any, Any]]
    ) -> tuple[tuple[int | None, ...], tuple[tuple[int, int], ...]] | None:
        names = self.bound.parameters
        inputs: list[int | None] = []
        for place, given in zip(self.bound.places, self.inputs, strict=True):
            if place is None or (place >= 0 and given is not self.values[names[place]]):
                return None
            inputs.append(place if place >= 0 else None)
        if any(isinstance(target, list) or is_int4(target) for _, _, target, _ in written):
            return None
        return tuple(inputs), tuple((number, names.index(o.name or "")) for number, o, _, _ in written)

    def run(self) -> None:
        """Run the kernel and write its results."""
        written = self._written(self._results(self.bound.kernel.function, self.inputs))
        for _, output, target, result in written:  # all fit, or nothing is written
            self._check_fit(output, target, result)
        for _, _, target, result in written:
            for place, value in zip(listed(target), listed(result), strict=True):
                place.copy_(value)

    def _results(self, function: Callable[..., Any], inputs: Iterable[Any]) -> Any:
        try:
            return function(*inputs, **self.attrs)
        except Exception as error:  # whatever PyTorch or a kernel says of what they do not support
            raise self.bound.failed(error) from error

    def _written(self, results: Any) -> list[tuple[int, OutputParameter, Any, Any]]:
        """Return the requested outputs: result number, parameter, the caller's tensors and the results."""
        outputs, computed = self.bound.function.outputs, _tuple(results)
        lacking = [o.name for o in outputs[len(computed) :] if o.name is not None and not o.optional]
        if lacking:
            raise HostRuntimeError(
                f"{self.bound.function.symbol}: the kernel computes no {', '.join(lacking)}; pass null for it"
            )
        written = []
        # A function may have fewer than its kernel.
        for number, (output, result) in enumerate(zip(outputs, computed, strict=False)):
            if output.name is None:
                continue
            target = self.values[output.name]
            if output.optional and (is_absent(target) or is_absent(result)):
                continue
            whole = packed(result, 2) if is_int4(target) and result.dtype is INT4 else result
            written.append((number, output, target, whole))
        return written

    def _check_fit(self, output: OutputParameter, target: Any, result: Any) -> None:
        targets, results = listed(target), listed(result)
        if len(targets) != len(results):
            raise HostRuntimeError(
                f"{self.bound.function.symbol}: {output.name} has {len(targets)} tensors; expected {len(results)}, as "
                "the operator computes"
            )
        for place, value in zip(targets, results, strict=True):
            if place.shape != value.shape or place.dtype != value.dtype:
                raise self.bound.misfit(output.name or "", place, value)


def _reader(expression: ast.expr) -> Reader:
    """Compile an expression of the table into a reader of the values of a call."""
    match expression:
        case ast.Name(id=name):
            return itemgetter(name)
        case ast.Call(func=ast.Name(id="dtype_of"), args=[ast.Name(id=name)]):
            return lambda values: _dtype_of(values[name])
        case ast.Call(func=ast.Name(id="is_null"), args=[ast.Name(id=name)]):
            return lambda values: values[name] is None
        case ast.Call(func=ast.Name(id="rows_of"), args=[ast.Name(id=name)]):
            return lambda values: None if values[name] is None else values[name].size(0)
        case ast.List(elts=elements):
            readers = tuple(map(_reader, elements))
            return lambda values: [reader(values) for reader in readers]
    constant = ast.literal_eval(expression)
    return lambda values: constant


def _dtype_of(value: Any) -> int | None:
    tensor = next(iter(value), None) if isinstance(value, list) else value
    return None if tensor is None else getattr(tensor, "ge_dtype", None) or int(ge_dtype(tensor.dtype))


def _tuple(results: Any) -> Sequence[Any]:
    return () if results is None else results if isinstance(results, tuple) else (results,)
