"""In-place operators that return what they write, ``op_(Tensor(a!) self) -> Tensor(a!)``, under ``torch.compile``.

torch functionalizes custom operators that write to arguments, but refuses those that also return them. Such an operator
gets a twin that returns nothing of what it writes; compiling replaces a call by one of the twin and hands the argument on.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch._C._functorch import TransformType
from torch._higher_order_ops.auto_functionalize import do_auto_functionalize_v2
from torch._subclasses.functional_tensor import FunctionalTensorMode

from ascend_graph.binding.bound import Binding
from ascend_graph.binding.op_schema import OpSchema, read_schema
from ascend_graph.dispatch.definition import forget_kernels
from ascend_graph.registration.converter import make_converter
from ascend_graph.registration.torchair import ConverterFunction, ConverterHandle, register_converter

#: Before the namespace of the operator: twins are named as their operators are.
_NAMESPACE = "ascend_in_place_"


def needs_twin(overload: Any, schema: OpSchema) -> bool:
    """Whether torch would refuse to compile the operator, and nobody else has seen to it."""
    returns_argument = any(
        returned.alias_of is not None and schema.argument(returned.alias_of).mutated for returned in schema.returns
    )
    return (
        returns_argument
        and overload.namespace != "aten"
        and not torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), "Functionalize")
        and FunctionalTensorMode not in overload.python_key_table
    )


@dataclass(slots=True)
class TwinHandle:
    """A registered twin that can be taken back."""

    overload: Any
    _library: torch.library.Library | None
    _converter: ConverterHandle

    def remove(self) -> None:
        """Take the twin back. A second call does nothing."""
        if self._library is None:
            return
        self.overload.python_key_table.pop(FunctionalTensorMode, None)
        self.overload.functorch_table.pop(TransformType.Functionalize, None)
        self.overload.py_kernels.pop(torch._C.DispatchKey.Functionalize, None)
        forget_kernels(self.overload)
        self._converter.remove()
        _live.remove(self._library)
        self._library._destroy()
        self._library = None


# A library that nobody holds takes its registrations back when it is collected.
_live: list[torch.library.Library] = []


def register_twin(overload: Any, binding: Binding, converter: ConverterFunction | None) -> TwinHandle:
    """Define the twin with a kernel and a converter, and the rule that replaces the operator by it.

    Args:
        overload: The operator.
        binding: Its binding.
        converter: A converter that is not made from the binding, or None.
    """
    schema = binding.schema
    fresh = [n for n, returned in enumerate(schema.returns) if returned.alias_of is None]
    namespace, _, name = schema.name.partition("::")
    namespace, full_name = _NAMESPACE + namespace, f"{name}.{schema.overload}" if schema.overload else name
    arguments = schema.text[schema.text.index("(") : schema.text.rindex(" -> ")]
    returns = ", ".join(schema.returns[n].type_text for n in fresh)
    library = torch.library.Library(namespace, "FRAGMENT")
    try:
        library.define(f"{full_name}{arguments} -> ({returns})", tags=(torch.Tag.pt2_compliant_tag,))

        def kernel(*args: Any, **kwargs: Any) -> Any:
            return _select(overload(*args, **kwargs), fresh)

        library.impl(full_name, kernel, "CompositeExplicitAutograd")
        twin = getattr(getattr(getattr(torch.ops, namespace), name), schema.overload or "default")
        handle = register_converter(twin, _twin_converter(twin, binding, converter, fresh))
    except BaseException:
        library._destroy()
        raise

    positions = {argument.name: n for n, argument in enumerate(schema.arguments)}

    def rule(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        made = do_auto_functionalize_v2(ctx.mode, twin, args, kwargs)
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
    return TwinHandle(overload, library, handle)


def _select(made: Any, wanted: list[int]) -> Any:
    values = made if isinstance(made, tuple | list) else (made,)
    picked = tuple([values[n] for n in wanted])
    return picked[0] if len(picked) == 1 else picked or None


def _twin_converter(
    twin: Any, binding: Binding, converter: ConverterFunction | None, fresh: list[int]
) -> ConverterFunction:
    if converter is None:
        returns = tuple(binding.returns[n] for n in fresh)
        return make_converter(replace(binding, schema=read_schema(twin._schema), returns=returns))
    own = converter

    def convert(*args: Any, **kwargs: Any) -> Any:
        return _select(own(*args, **kwargs), fresh)

    return convert
