"""Sample calls for checking an operator: given ones, and ones drawn from its shape relation and prototype."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from ascend_graph.binding.dtype_ints import used_as_dtype
from ascend_graph.checks.calls.type_values import other_values
from ascend_graph.dispatch.meta_dtypes import TORCH, GeNumber
from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes import Parameter
from ascend_graph.registration.dimensions.input_dtypes import dtype_combinations, fed_inputs, listed_dtypes
from ascend_graph.registration.registered import RegisteredOp
from ascend_graph.shapes import RelationError, ShapeError
from ascend_graph.shapes.compared import list_lengths
from ascend_graph.shapes.samples import RelationSampleError as NoSampleError
from ascend_graph.shapes.samples import sample as relation_sample

#: Sizes of a dimension: mostly not multiples of a kernel's block size, so that a remainder occurs.
SIZES = (2, 3, 5, 7, 8, 16, 17, 33)
_TRIES = 40
#: Maximum number of elements of a call.
_MOST_ELEMENTS = 1 << 24


class SampleError(AscendGraphError, ValueError):
    """Lack of a sample call for an operator, or an invalid option of a check."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Call of an operator: CPU tensors and other values by position and by name.

    >>> print(Sample((torch.zeros(2, 3), 1), {"mode": "a"}))
    (torch.float32[2, 3], 1, mode='a')
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    #: Reason why it was drawn: ``"random"``, ``"empty"``, ``"without bias"``, ``"x float16"``; ``"given"``.
    why: str = "given"

    def on(self, device: torch.device, make: Callable[[torch.Tensor], torch.Tensor] | None = None) -> Sample:
        """Return the sample with every tensor copied to a device and passed through ``make``.

        A tensor that occurs twice is copied once.
        """
        copies: dict[int, torch.Tensor] = {}

        def copy(tensor: torch.Tensor) -> torch.Tensor:
            if id(tensor) not in copies:
                made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)
                made.copy_(tensor.detach())
                copies[id(tensor)] = made if make is None else make(made)
            return copies[id(tensor)]

        args, kwargs = tree_map_only(torch.Tensor, copy, (self.args, dict(self.kwargs)))
        return replace(self, args=args, kwargs=kwargs)

    @property
    def tensors(self) -> list[torch.Tensor]:
        """Tensors in order, including those in lists."""
        found: list[torch.Tensor] = []
        tree_map_only(torch.Tensor, found.append, (self.args, dict(self.kwargs)))
        return found

    @property
    def size(self) -> int:
        """Number of elements of all tensors."""
        return sum(t.numel() for t in self.tensors)

    def __str__(self) -> str:
        shown = [_shown(a) for a in self.args] + [f"{n}={_shown(v)}" for n, v in self.kwargs.items()]
        return f"({', '.join(shown)})"


def _shown(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        layout = "" if value.is_contiguous() else f" strides {list(value.stride())}"
        return f"{value.dtype}{list(value.shape)}{layout}"
    return f"[{', '.join(map(_shown, value))}]" if isinstance(value, list | tuple) else repr(value)


@dataclass(frozen=True, slots=True)
class DimensionRange:
    """Consecutive dimensions of an input, as the shape of another input.

    >>> DimensionRange("x", -1, None).shape({"x": (2, 3, 4)})
    (4,)
    >>> print(DimensionRange("x", None, -1))
    the shape of x without its last dimension
    """

    #: The input that has the dimensions; None for one dimension of size 1.
    source: str | None
    start: int | None = None
    stop: int | None = None

    def shape(self, shapes: Mapping[str, Any]) -> tuple[int, ...] | None:
        """Return the dimensions, or None if the input is absent or a list, or has too few."""
        if self.source is None:
            return (1,)
        given = shapes.get(self.source)
        needed = max(abs(bound) for bound in (self.start or 0, self.stop or 0))
        if not isinstance(given, tuple) or len(given) < needed:
            return None
        return given[self.start : self.stop]

    def __str__(self) -> str:
        if self.source is None:
            return "one element"
        match self.start, self.stop:
            case None, None:
                return f"the shape of {self.source}"
            case None, int(stop) if stop < 0:
                return f"the shape of {self.source} without its last dimension"
            case None, _:
                return f"the first dimension of {self.source}"
            case int(start), None if start > 0:
                return f"the shape of {self.source} without its first dimension"
            case -1, None:
                return f"the last dimension of {self.source}"
            case start, _:
                return f"the last {-(start or 0)} dimensions of {self.source}"


class SampleGenerator:
    """Generator of calls of a registered operator.

    Args:
        op: The operator; it needs a shape relation.
        seed: The same seed gives the same calls.
        known: Known values by attr, which are drawn before those that only fit its type.

    Raises:
        SampleError: The operator has no relation to draw from.
    """

    def __init__(self, op: RegisteredOp, seed: int = 0, known: Mapping[str, Sequence[Any]] | None = None) -> None:
        if op.relation is None:
            raise SampleError(
                f"{op.overload} has no shape relation, from which calls could be drawn (its meta function: "
                f"{op.evidence.get('meta', 'none')}); give shape= when it is registered, or samples= (SAMPLES of the module for ascend-graph check)"
            )
        self.op, self.relation, self.seed = op, op.relation, seed
        self.known = dict(known or {})
        names = op.binding.argument_names()
        used = {*self.relation.inputs, *self.relation.free_names}
        #: Names in the relation, by names in the schema.
        self.names = names if used <= set(names.values()) else {}
        self.arguments = list(op.overload._schema.arguments)
        self.dtype_names = used_as_dtype(self.relation)
        self.ge_numbers = op.binding.ge_dtype_arguments()
        self.parameters: dict[str, Parameter] = {} if op.prototype is None else fed_inputs(op.binding)
        #: Lengths of lists that the relation reads elements of.
        self.lengths = list_lengths(self.relation)
        #: Shapes of tensors that the relation does not state, by argument; others are absent.
        self.assumed: Mapping[str, DimensionRange] = {}
        #: Why the last call was not drawn; empty if none failed.
        self.trouble = ""

    def unstated(self) -> list[str]:
        """Return the tensors of the schema that the relation does not name."""
        return [a.name for a in self.arguments if is_tensor(a) and self.name(a) not in self.relation.inputs]

    def name(self, argument: Any) -> str:
        """Return an argument's name in the relation."""
        return str(self.names.get(argument.name, argument.name))

    def in_relation(self, argument: str, value: Any) -> Any:
        """Return an attr's value as the relation reads it: a dtype is a name."""
        if self.names.get(argument, argument) not in self.dtype_names or value is None:
            return value
        dtype = TORCH.from_attr(GeNumber(value) if argument in self.ge_numbers else value)
        return value if dtype is None else TORCH.to_name(dtype)

    def draw(
        self,
        number: int,
        why: str = "random",
        *,
        sizes: Sequence[int] = SIZES,
        dtypes: Mapping[str, torch.dtype] | None = None,
        absent: Sequence[str] | None = None,
        attrs: Mapping[str, Any] | None = None,
        plain: bool = False,
        values: int = 0,
    ) -> Sample | None:
        """Draw one call, or return None if none is found.

        Args:
            number: Number of the call; calls with the same number differ only in sizes and elements.
            why: Reason that the sample states.
            sizes: Sizes that dimensions are chosen from.
            dtypes: The dtypes of arguments; drawn if None.
            absent: The optional tensors that are absent; drawn if None.
            attrs: The values of some attrs.
            plain: If true, the other attrs keep their defaults.
            values: Number that selects sizes and elements.
        """
        structure = random.Random(f"{self.seed} {number}")
        for _ in range(_TRIES):
            every = {a.name: self.attr(a, structure, plain) for a in self.arguments if not is_tensor(a)}
            every |= attrs or {}
            if any(value is _Undrawable for value in every.values()):
                return None
            gone = self.absent(structure) if absent is None else absent
            chosen = self.dtypes(structure, plain) if dtypes is None else dtypes
            rng = random.Random(structure.getrandbits(32) + 1_000_003 * values)
            sample = self.fitting(every, gone, chosen, rng, structure.getrandbits(32), sizes, why)
            if sample is not None:
                return sample
        return None

    def fitting(
        self,
        attrs: dict[str, Any],
        gone: Sequence[str],
        dtypes: Mapping[str, torch.dtype],
        rng: random.Random,
        structure: int,
        sizes: Sequence[int],
        why: str,
    ) -> Sample | None:
        """Return a call with these attrs and dtypes that the relation accepts, or None."""
        named = {self.names.get(n, n): self.in_relation(n, v) for n, v in attrs.items()}
        there = {self.name(a): a for a in self.arguments if is_tensor(a)}
        try:
            absent = [n for n in there if there[n].name in gone]
            options: Any = {"absent": absent, "sizes": sizes, "structure": structure}
            found = relation_sample(self.relation, named, rng, dtypes=("float32",), tries=30, **options)
            shapes = dict(found.shapes)
            types: dict[str, Any] = {}
            for name, shape in shapes.items():
                dtype = dtypes.get(there[name].name) if name in there else None
                drawn = found.dtypes[name] if dtype is None else TORCH.to_name(dtype)
                types[name] = None if shape is None else drawn
                if isinstance(shape, list):
                    types[name] = [drawn[0] if isinstance(drawn, list) else drawn] * len(shape)
            self.relation.infer(shapes, types, named)
        except (NoSampleError, RelationError, ShapeError, TypeError) as error:
            self.trouble = str(error)
            return None
        for name in self.assumed.keys() - set(gone):
            assumed = self.assumed[name].shape(shapes)
            if assumed is None:
                return None
            drawn = TORCH.to_name(dtypes.get(name, torch.float32))
            is_list = any(a.name == name and "List[" in str(a.type) for a in self.arguments)
            shapes[self.names.get(name, name)] = [assumed] if is_list else assumed
            types[self.names.get(name, name)] = [drawn] if is_list else drawn
        every = [s for shape in shapes.values() for s in (shape if isinstance(shape, list) else [shape])]
        if sum(math.prod(shape) for shape in every if shape is not None) > _MOST_ELEMENTS:
            self.trouble = f"a call has more than {_MOST_ELEMENTS} elements"
            return None
        return self.filled(attrs, shapes, types, rng.getrandbits(32), why)

    def filled(
        self, attrs: Mapping[str, Any], shapes: Mapping[str, Any], types: Mapping[str, Any], seed: int, why: str
    ) -> Sample:
        """Return a call with tensors of these shapes and dtypes, absent where there is no shape."""
        generator = torch.Generator().manual_seed(seed)
        values: dict[str, Any] = {}
        for argument in self.arguments:
            if not is_tensor(argument):
                values[argument.name] = attrs[argument.name]
                continue
            name = self.name(argument)
            shape = shapes.get(name)
            if shape is None:
                values[argument.name] = None
            elif isinstance(shape, list):
                pairs = zip(shape, types[name], strict=True)
                values[argument.name] = [_tensor(s, getattr(torch, d), generator) for s, d in pairs]
            else:
                values[argument.name] = _tensor(shape, getattr(torch, types[name]), generator)
        args = tuple(values[a.name] for a in self.arguments if not a.kwarg_only)
        return Sample(args, {a.name: values[a.name] for a in self.arguments if a.kwarg_only}, why)

    # ------------------------------------------------------------------------------------------------ what is drawn

    def optional(self) -> list[str]:
        """Return the names of the tensors that may be absent."""
        return [a.name for a in self.arguments if is_tensor(a) and isinstance(a.type, torch.OptionalType)]

    def absent(self, rng: random.Random) -> list[str]:
        return [name for name in self.optional() if rng.random() < 0.4]

    def allowed(self) -> dict[str, tuple[torch.dtype, ...]]:
        """Return the dtypes that the prototype lists for each argument, as far as torch has them."""
        return listed_dtypes(self.parameters)

    def combinations(self) -> list[dict[str, torch.dtype]]:
        """Return the combinations of dtypes by argument that the prototype lists."""
        return dtype_combinations(self.allowed())

    def dtypes(self, rng: random.Random, plain: bool) -> dict[str, torch.dtype]:
        """Choose a combination of dtypes: a floating-point one if possible, with float32 if ``plain``."""
        columns = self.combinations()
        columns = [c for c in columns if any(d.is_floating_point for d in c.values())] or columns
        single = [c for c in columns if torch.float32 in c.values()] if plain else []
        return rng.choice(single or columns) if columns else {}

    def others(self, argument: Any) -> list[Any]:
        """Return values of an attr other than its default: known values first, then those of its type."""
        found = list(self.known.get(argument.name, ()))
        return [
            *found,
            *(
                v
                for v in other_values(argument, self.lengths.get(self.name(argument), 1))
                if not any(type(v) is type(k) and v == k for k in found)
            ),
        ]

    def attr(self, argument: Any, rng: random.Random, plain: bool) -> Any:
        """Choose a value of a non-tensor argument; if ``plain``, its default if it has one."""
        default = argument.default_value if argument.has_default_value() else None
        if argument.has_default_value() and (plain or rng.random() < 0.5):
            return default
        others = self.others(argument)
        if argument.has_default_value() or isinstance(argument.type, torch.OptionalType):
            others.append(default)
        return rng.choice(others) if others else _Undrawable


class _Undrawable:
    """Marker for an argument without any known value."""


def is_tensor(argument: Any) -> bool:
    """Return whether an argument of a schema is a tensor or a list of tensors."""
    return "Tensor" in str(argument.type)


def _tensor(shape: Sequence[int], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    if dtype.is_floating_point or dtype.is_complex:
        wide = torch.complex64 if dtype.is_complex else torch.float32
        return torch.randn(shape, dtype=wide, generator=generator).to(dtype)
    return torch.randint(0, 2, tuple(shape), generator=generator).to(dtype)


def drawn(drawer: SampleGenerator, count: int) -> list[Sample]:
    """Draw calls that vary one property after another, the most important first.

    The order is: all inputs and defaults; every attr with another value; every optional tensor absent; sizes of 2 and 3; random
    calls; sizes of 0 and 1; every dtype; each attr with each of its special values.
    """
    made = [drawer.draw(0, "defaults", absent=[], plain=True)]
    others = {a.name: drawer.others(a) for a in drawer.arguments if not is_tensor(a)}
    others = {name: values for name, values in others.items() if values}
    made.append(drawer.draw(1, "other attrs", absent=[], attrs={name: values[0] for name, values in others.items()}))
    optional = drawer.optional()
    made += [drawer.draw(2, f"without {name}", absent=[name], plain=True) for name in optional]
    if len(optional) > 1:
        made.append(drawer.draw(2, "without what is optional", absent=optional, plain=True))
    made.append(drawer.draw(9, "sizes of 2 and 3", sizes=(2, 3), plain=True))  # of which a shard has one row
    made += [drawer.draw(10 + number) for number in range(count)]
    for number, sizes in enumerate(((0,), (0, 3), (0, 1, 2))):
        made.append(drawer.draw(3 + number, "empty", sizes=sizes, plain=True))
    made.append(drawer.draw(6, "sizes of 1", sizes=(1,), plain=True))
    for number, dtypes in enumerate(drawer.combinations()):
        listed = ", ".join(sorted({str(d).removeprefix("torch.") for d in dtypes.values()}))
        made.append(drawer.draw(7, listed, dtypes=dtypes, plain=True, values=number))
    return [sample for sample in made if sample is not None] + with_values(drawer, others)


def with_values(drawer: SampleGenerator, values: Mapping[str, Sequence[Any]]) -> list[Sample]:
    """Draw calls with the defaults of all attrs but one, which has each of its values in turn."""
    optional = drawer.optional()
    made = [
        drawer.draw(8, f"{name}={value!r}", absent=optional if number % 2 else [], attrs={name: value}, plain=True)
        for name, some in values.items()
        for number, value in enumerate(some)
    ]
    return [sample for sample in made if sample is not None]


def families(samples: Sequence[Sample]) -> list[list[Sample]]:
    """Group the samples that differ only in sizes and elements."""
    found: dict[str, list[Sample]] = {}
    for sample in samples:
        tensors = [(t.dtype, t.dim(), tuple(t.shape) if min(t.shape, default=2) < 2 else ()) for t in sample.tensors]
        values = tree_map_only(torch.Tensor, lambda _: "tensor", (sample.args, dict(sample.kwargs)))
        found.setdefault(f"{tensors} {values}", []).append(sample)
    return list(found.values())
