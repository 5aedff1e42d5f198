"""Functionalization under ``torch.compile`` of operators that write to arguments.

PyTorch has such a rule for custom operators (its errors are listed in
:mod:`~ascend_graph.registration.writing.mutation`), but refuses operators that also return a written argument,
``op_(Tensor(a!) self) -> Tensor(a!)``. Such an operator gets a functional variant that does not return it; compiling
replaces a call by one of the variant and returns the argument.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch._C._functorch import TransformType
from torch._subclasses.functional_tensor import FunctionalTensorMode
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode

from ascend_graph.binding.bound import Binding
from ascend_graph.binding.op_schema import OpSchema, read_schema
from ascend_graph.dispatch.definition import forget_kernels
from ascend_graph.dispatch.torchair import (
    ConverterFunction,
    ConverterHandle,
    RefusalHandle,
    refuse_in_graphs,
    register_converter,
)
from ascend_graph.registration.conversion.converter import make_converter
from ascend_graph.registration.writing import graph_passes, mutation
from ascend_graph.registration.writing.returned_arguments import check_returned_argument

#: Prefix of the operator's namespace for its functional variant, which has the same name.
_NAMESPACE = "ascend_in_place_"


def needs_functional_variant(schema: OpSchema) -> bool:
    """Return whether torch would refuse to compile the operator, as it returns a written argument."""
    return any(
        returned.alias_of is not None and schema.argument(returned.alias_of).mutated for returned in schema.returns
    )


def has_own_rule(overload: Any) -> bool:
    """Return whether the operator has a functionalization rule from elsewhere, or PyTorch decomposes it."""
    kernels = ("Functionalize", "CompositeImplicitAutograd")
    return (
        overload.namespace == "aten"
        or FunctionalTensorMode in overload.python_key_table
        or any(torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), kernel) for kernel in kernels)
    )


@dataclass(slots=True)
class RuleHandle:
    """Handle of the rules of an operator that returns no written argument, by which they are unregistered."""

    overload: Any
    _active: bool = True

    def remove(self) -> None:
        """Unregister the rules. A second call does nothing."""
        if not self._active:
            return
        self._active = False
        mutation.remove_operator(self.overload)
        for mode in (FunctionalTensorMode, ProxyTorchDispatchMode):
            self.overload.python_key_table.pop(mode, None)
        forget_kernels(self.overload)


def register_mutation(
    overload: Any, binding: Binding, converter: ConverterFunction | None, refusal: Callable[[], str] | None = None
) -> RuleHandle | TwinHandle:
    """Register the rules of an operator that writes; with a functional variant if it returns a written argument."""
    if needs_functional_variant(binding.schema):
        return register_functional_variant(overload, binding, converter, refusal)
    return register_rule(overload)


def register_rule(overload: Any) -> RuleHandle:
    """Register the rules by which calls of an operator that writes become graph nodes."""

    def functionalized(mode: Any, /, *args: Any, **kwargs: Any) -> Any:
        graph_passes.install()
        mutation.check_operator(overload)
        if not mutation.is_functionalized_here(mode, overload, args, kwargs):
            return mode.__torch_dispatch__(overload, (), args, kwargs)
        return mutation.functionalize(mode, overload, args, kwargs)

    overload.py_impl(FunctionalTensorMode)(functionalized)
    handle = _register_tracing(overload)
    graph_passes.install()
    return handle


def _register_tracing(overload: Any) -> RuleHandle:
    def traced(mode: Any, /, *args: Any, **kwargs: Any) -> Any:
        return mutation.trace(overload, mode, args, kwargs)

    overload.py_impl(ProxyTorchDispatchMode)(traced)
    mutation.add_operator(overload)
    forget_kernels(overload)
    return RuleHandle(overload)


@dataclass(slots=True)
class TwinHandle:
    """Handle of a registered functional variant, by which it is unregistered."""

    overload: Any
    _library: torch.library.Library | None
    _converter: ConverterHandle | RefusalHandle
    _rules: RuleHandle

    def remove(self) -> None:
        """Unregister the functional variant. A second call does nothing."""
        if self._library is None:
            return
        self.overload.python_key_table.pop(FunctionalTensorMode, None)
        self.overload.functorch_table.pop(TransformType.Functionalize, None)
        self.overload.py_kernels.pop(torch._C.DispatchKey.Functionalize, None)
        forget_kernels(self.overload)
        self._rules.remove()
        self._converter.remove()
        _live.remove(self._library)
        self._library._destroy()
        self._library = None


# A library that nobody holds takes its registrations back when it is collected.
_live: list[torch.library.Library] = []


def register_functional_variant(
    overload: Any, binding: Binding, converter: ConverterFunction | None, refusal: Callable[[], str] | None = None
) -> TwinHandle:
    """Define the functional variant with a kernel and a converter, and the rule that replaces the operator by it.

    Args:
        overload: The operator.
        binding: Its binding.
        converter: A converter that is not made from the binding, or None.
        refusal: The message of GE graphs, if the operator has no GE node.
    """
    schema = binding.schema
    fresh = [n for n, returned in enumerate(schema.returns) if returned.alias_of is None]
    namespace, _, name = schema.name.partition("::")
    namespace = _NAMESPACE + namespace
    # Not two overloads of one name: PyTorch tells operators that it forgets apart by name and arguments, and of two such
    # overloads it keeps one in its table of schemas after both are gone, with a pointer to freed memory.
    name = f"{name}__{schema.overload}" if schema.overload else name
    arguments = schema.text[schema.text.index("(") : schema.text.rindex(" -> ")]
    # PyTorch writes Tensor! as a set without a name, which it does not read.
    arguments = re.sub(r"\(\$(\d+)! -> \)", r"(unnamed\1!)", arguments)
    returns = ", ".join(schema.returns[n].type_text for n in fresh)
    library = torch.library.Library(namespace, "FRAGMENT")
    try:
        library.define(f"{name}{arguments} -> ({returns})", tags=(torch.Tag.pt2_compliant_tag,))

        def kernel(*args: Any, **kwargs: Any) -> Any:
            results = overload(*args, **kwargs)
            _check_returned(schema, args, kwargs, results)
            return _select(results, fresh)

        library.impl(name, kernel, "CompositeExplicitAutograd")
        variant = getattr(getattr(torch.ops, namespace), name).default
        handle: ConverterHandle | RefusalHandle
        if refusal is not None and converter is None:
            handle = refuse_in_graphs(variant, refusal)
        else:
            handle = register_converter(variant, _variant_converter(variant, binding, converter, fresh), own=True)
        rules = _register_tracing(variant)
    except BaseException:
        library._destroy()
        raise

    positions = {argument.name: n for n, argument in enumerate(schema.arguments)}

    def rule(ctx: Any, /, *args: Any, **kwargs: Any) -> Any:
        graph_passes.install()
        made = mutation.functionalize(ctx.mode, variant, args, kwargs)
        rest = iter(made if isinstance(made, tuple | list) else (made,))
        results = []
        for returned in schema.returns:
            owner = returned.alias_of
            if owner is None:
                results.append(next(rest))
            else:
                results.append(kwargs[owner] if owner in kwargs else args[positions[owner]])
        return results[0] if len(results) == 1 else tuple(results)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        overload.py_functionalize_impl(rule)
    forget_kernels(overload)
    _live.append(library)
    graph_passes.install()
    return TwinHandle(overload, library, handle, rules)


def _check_returned(schema: OpSchema, args: Sequence[Any], kwargs: Mapping[str, Any], made: Any) -> None:
    """Check that an operator returned the arguments that its schema says; the functional variant drops them."""
    given = {**dict(zip((a.name for a in schema.arguments), args, strict=False)), **kwargs}
    for number, value in enumerate(made if len(schema.returns) > 1 else (made,)):
        owner = schema.returns[number].alias_of
        if owner is not None and type(given.get(owner)) in (torch.Tensor, torch.nn.Parameter):
            check_returned_argument(schema, number, value, given[owner])


def _select(made: Any, wanted: list[int]) -> Any:
    values = made if isinstance(made, tuple | list) else (made,)
    picked = tuple([values[n] for n in wanted])
    return picked[0] if len(picked) == 1 else picked or None


def _variant_converter(
    variant: Any, binding: Binding, converter: ConverterFunction | None, fresh: list[int]
) -> ConverterFunction:
    if converter is None:
        returns = tuple(binding.returns[n] for n in fresh)
        return make_converter(replace(binding, schema=read_schema(variant._schema), returns=returns))
    own = converter

    def convert(*args: Any, **kwargs: Any) -> Any:
        return _select(own(*args, **kwargs), fresh)

    return convert
