"""Bind a schema's arguments and returns to a prototype's inputs, attrs and outputs.

A binding is found once, from names, and checked once. Position alone never binds an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ascend_graph.binding.bound import Argument, Binding, Conversion, Evidence, Source
from ascend_graph.binding.dtype_ints import Numbers, is_dtype_name, used_as_dtype
from ascend_graph.binding.dtypes import NPU_DTYPE_OFFSET, dtype_number, ge_dtype_of_number
from ascend_graph.binding.errors import BindingError, columns
from ascend_graph.binding.matching import only_pairs
from ascend_graph.binding.op_schema import ArgumentKind, OpSchema, SchemaArgument
from ascend_graph.binding.own_schema import OperatorSchema
from ascend_graph.binding.returns import RETURNS, ReturnSearch
from ascend_graph.binding.synonyms import FIRST_TENSOR_NAMES, are_synonyms, likely_same, normalize, words
from ascend_graph.prototypes import Attr, AttrType, DataType, OpPrototype, Parameter, ParameterKind
from ascend_graph.prototypes.writer import reg_op_calls
from ascend_graph.shapes import Relation

_GE_DTYPE_NUMBERS = frozenset(map(int, DataType))

#: The value of ``arguments=`` for what GE has nothing for, and only the shapes of outputs need.
SHAPE_ONLY = "shape only"


@dataclass(slots=True)
class _Target:
    """One input or attr of the prototype that may be fed."""

    parameter: Parameter | Attr
    index: int
    source: Source | None = None

    @property
    def name(self) -> str:
        return self.parameter.name

    @property
    def is_input(self) -> bool:
        return isinstance(self.parameter, Parameter)

    @property
    def must_be_fed(self) -> bool:
        if isinstance(self.parameter, Parameter):
            return self.parameter.kind is not ParameterKind.OPTIONAL
        return self.parameter.required or not self.parameter.default_known

    def accepts(self, argument: SchemaArgument) -> bool:
        if isinstance(self.parameter, Parameter):
            return _input_accepts(self.parameter, argument)
        return argument.kind in _ATTR_KINDS[self.parameter.type][0] and (
            argument.list_depth in _ATTR_KINDS[self.parameter.type][1]
        )


_STRIDES = frozenset({"stride", "strides"})
#: Words for what a tensor has by itself.
_PROPERTIES = _STRIDES | {"dim", "dims", "size", "sizes", "shape", "len", "length", "rank", "numel"}

_K = ArgumentKind
_NUMBERS = (_K.INT, _K.BOOL, _K.SCALAR)
#: What may feed an attr as it is: the kinds of an element, and the list depths. A hook makes anything of anything.
_ATTR_KINDS: Mapping[AttrType, tuple[tuple[ArgumentKind, ...], tuple[int, ...]]] = {
    AttrType.INT: ((*_NUMBERS, _K.DTYPE), (0,)),
    AttrType.FLOAT: ((*_NUMBERS, _K.FLOAT), (0,)),
    AttrType.BOOL: (_NUMBERS, (0,)),
    AttrType.STRING: ((_K.STR,), (0,)),
    AttrType.BYTES: ((_K.STR,), (0,)),
    AttrType.TYPE: ((_K.DTYPE, _K.INT), (0,)),
    AttrType.TENSOR: ((*_NUMBERS, _K.FLOAT), (0, 1)),
    AttrType.NAMED_ATTRS: ((), ()),
    AttrType.LIST_INT: ((*_NUMBERS, _K.DTYPE), (0, 1)),
    AttrType.LIST_FLOAT: ((*_NUMBERS, _K.FLOAT), (0, 1)),
    AttrType.LIST_BOOL: (_NUMBERS, (0, 1)),
    AttrType.LIST_STRING: ((_K.STR,), (0, 1)),
    AttrType.LIST_TYPE: ((_K.DTYPE, _K.INT), (0, 1)),
    AttrType.LIST_TENSOR: ((), ()),
    AttrType.LIST_LIST_INT: (_NUMBERS, (1, 2)),
    AttrType.LIST_LIST_FLOAT: ((*_NUMBERS, _K.FLOAT), (1, 2)),
    AttrType.LIST_NAMED_ATTRS: ((), ()),
}


def _input_accepts(parameter: Parameter, argument: SchemaArgument) -> bool:
    dynamic = parameter.kind is ParameterKind.DYNAMIC
    if argument.is_tensor:
        return dynamic or argument.list_depth == 0
    constant = argument.kind in (*_NUMBERS, _K.FLOAT, _K.COMPLEX) and argument.list_depth <= 1
    return constant and not dynamic


def bind(
    schema: OpSchema,
    prototype: OpPrototype,
    arguments: Mapping[str, Any] | None = None,
    *,
    relation: Relation | None = None,
    own: OperatorSchema | None = None,
    complete: bool = True,
) -> Binding:
    """Bind a schema to a prototype by name.

    Args:
        schema: The schema of the overload.
        prototype: The prototype of the op that it becomes.
        arguments: What names do not settle.

            - ``"torch name": "GE name"`` renames;
            - ``"torch name": ("GE name", hook)`` also converts each value, with a function or a table of the allowed ones;
            - ``"torch name": Argument(…)`` says more;
            - ``"torch name": None``: GE has nothing for the argument, which then has to stay at its default;
            - ``"torch name": "shape only"``: GE has nothing for it, and only the shapes of outputs need it;
            - ``"torch name": "GE output"`` of an argument ``Tensor(a!)``: the caller passes the output in;
            - ``"GE name": value`` is for what the schema has not: the value of an attr or a constant input, or a function
              of all arguments (a mapping by torch name) that computes it;
            - ``"->": ("GE output", …)`` names the output of each return; of a return that is none, a function of all arguments
              computes it, and None says that graphs do not have it.
        relation: The shape relation, in the prototype's names or the schema's: it may name the outputs, and says which
            inputs are promoted to one dtype and which attrs are dtypes.
        own: Where the schema was made from the prototype: what it was made as. It says whose numbers of dtypes it takes.
        complete: Whether nothing may be left over, as a converter needs it; otherwise what cannot be told is left open.

    Raises:
        BindingError: Something is left over or ambiguous; the message shows both signatures and the line to write.

    >>> from ascend_graph.prototypes import parse_text
    >>> from ascend_graph.binding.op_schema import read_schema
    >>> import torch
    >>> prototype = parse_text('''REG_OP(LogCumSum)
    ...     .INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT})).ATTR(axis, Int, -1)
    ...     .OP_END_FACTORY_REG(LogCumSum)''').prototypes[0]
    >>> binding = bind(read_schema(torch.ops.aten.logcumsumexp.default._schema), prototype)
    >>> binding.argument_names()
    {'self': 'x', 'dim': 'axis'}
    """
    matcher = _Matcher(schema, prototype, dict(arguments or {}), relation, own, complete)
    return matcher.binding().with_relation(relation)


class _Matcher:
    """The state of one search; what is decided is never taken back."""

    def __init__(
        self,
        schema: OpSchema,
        prototype: OpPrototype,
        explicit: dict[str, Any],
        relation: Relation | None,
        own: OperatorSchema | None,
        complete: bool,
    ) -> None:
        self.schema, self.prototype, self.explicit, self.own = schema, prototype, explicit, own
        self.complete = complete
        self.output_names = relation.outputs if relation is not None else ()
        self.dtype_names = used_as_dtype(relation)
        self.inputs = [_Target(parameter, n) for n, parameter in enumerate(prototype.inputs)]
        self.attrs = [_Target(attr, n) for n, attr in enumerate(prototype.attrs)]
        self.targets = [*self.inputs, *self.attrs]
        self.open = list(range(len(schema.arguments)))
        self.ignored: list[int] = []
        self.shape_only: list[int] = []
        #: The outputs that the caller passes in, by the argument.
        self.passed_in: dict[int, tuple[int, Evidence]] = {}

    def binding(self) -> Binding:
        self.take_explicit()
        self.match(lambda a, t: a.name == t.name, Evidence.SAME_NAME)
        self.match(lambda a, t: normalize(a.name) == normalize(t.name), Evidence.NORMALIZED)
        self.match_first_tensor()
        self.match(lambda a, t: are_synonyms(a.name, t.name), Evidence.SYNONYM)
        self.match_passed_in()
        doubts = self.doubts() if self.complete else ()
        if self.complete:
            self.check_complete()
        fed = {t.source.argument: t.name for t in self.inputs if t.source is not None and t.source.argument is not None}
        search = ReturnSearch(
            self.schema,
            self.prototype,
            self.explicit.get(RETURNS),
            self.output_names,
            self.passed_in,
            fed,
            self.complete,
            self.refuse,
        )
        returns, mutations = search.found()
        used = {r.output for r in returns} | {m.output for m in mutations}
        written = {m.argument for m in mutations if m.in_place}
        copied = [
            target.index
            for target in self.inputs
            if target.source is not None and self.is_copied(target.name, target.source, written)
        ]
        return Binding(
            self.schema,
            self.prototype,
            tuple(target.source for target in self.inputs),
            tuple(target.source for target in self.attrs),
            tuple(returns),
            tuple(mutations),
            tuple(copied),
            tuple(sorted([*self.open, *self.ignored])),
            tuple(n for n in range(len(self.prototype.outputs)) if n not in used),
            shape_only=tuple(sorted(self.shape_only)),
            doubts=doubts,
        )

    def is_copied(self, name: str, source: Source, written: set[int]) -> bool:
        if source.copy is not None:
            return source.copy
        return name in self.prototype.in_place and source.argument not in written

    # ---------------------------------------------------------------------------------------------------- arguments=

    def take_explicit(self) -> None:
        names = {argument.name: n for n, argument in enumerate(self.schema.arguments)}
        for key, wanted in self.explicit.items():
            if key == RETURNS:
                continue
            if key in names:
                self.take_renamed(names[key], wanted)
            else:
                self.take_value(key, wanted)

    def take_renamed(self, position: int, wanted: Any) -> None:
        argument = self.schema.arguments[position]
        if wanted is None:
            if not (argument.has_default or argument.optional):
                raise self.refuse(f"arguments={{{argument.name!r}: None}}: {argument.name} has no default to stay at")
            self.ignored.append(position)
            self.open.remove(position)
            return
        if wanted == SHAPE_ONLY:
            self.shape_only.append(position)
            self.open.remove(position)
            return
        if isinstance(wanted, str):
            wanted = Argument(wanted)
        elif isinstance(wanted, tuple) and len(wanted) == 2:
            wanted = Argument(*wanted)
        if (
            not isinstance(wanted, Argument)
            or not isinstance(wanted.name, str)
            or not (wanted.convert is None or callable(wanted.convert) or isinstance(wanted.convert, Mapping))
        ):
            raise self.refuse(
                f"arguments={{{argument.name!r}: {wanted!r}}}: write the GE name, (GE name, function or table), "
                "ascend_graph.Argument(…), None, or 'shape only'"
            )
        name = wanted.name
        candidates = [target for target in self.targets if target.name == name]
        if not candidates and argument.mutated and name in (names := [o.name for o in self.prototype.outputs]):
            self.pass_in(position, names.index(name), Evidence.EXPLICIT)
            return
        if not candidates:
            raise self.refuse(f"{self.prototype.op_type} has no input or attr {name!r}; it has {_names(self.targets)}")
        # A name that is both an input and an attr: tensors go to the input.
        candidates.sort(key=lambda target: target.is_input != argument.is_tensor)
        target = candidates[0]
        if wanted.convert is None and not target.accepts(argument):
            raise self.refuse(f"{argument.type_text} {argument.name} cannot feed {_kind_of(target)} {name}")
        if target.source is not None:
            raise self.refuse(f"arguments= feeds {name} twice")
        self.decide(position, target, Evidence.EXPLICIT, wanted)

    def take_value(self, name: str, value: Any) -> None:
        target = next((target for target in (*self.attrs, *self.inputs) if target.name == name), None)
        if target is None:
            known = ", ".join(argument.name for argument in self.schema.arguments)
            raise self.refuse(
                f"arguments= mentions {name!r}, which is neither an argument ({known}) nor an input or attr of "
                f"{self.prototype.op_type} ({_names(self.targets)})"
            )
        if target.source is not None:
            raise self.refuse(f"arguments= feeds {name} twice")
        conversion = Conversion.CONST if target.is_input else Conversion.DIRECT
        target.source = Source(None, Evidence.EXPLICIT, conversion, value=value)

    # -------------------------------------------------------------------------------------------------------- rounds

    def match(self, same: Callable[[SchemaArgument, _Target], bool], evidence: Evidence) -> None:
        free = [target for target in self.targets if target.source is None]
        possible = {}
        for position in self.open:
            argument = self.schema.arguments[position]
            found = [target for target in free if same(argument, target) and target.accepts(argument)]
            # A name that is both an input and an attr: tensors go to the input, the rest to the attr.
            possible[position] = [target for target in found if target.is_input == argument.is_tensor] or found
        for position, target in only_pairs(possible):
            self.decide(position, target, evidence)

    def match_first_tensor(self) -> None:
        """``self`` or ``input`` of the schema is the first input, if both are still free."""
        first = next((n for n, a in enumerate(self.schema.arguments) if a.is_tensor), None)
        if first is None or first not in self.open or not self.inputs or self.inputs[0].source is not None:
            return
        argument = self.schema.arguments[first]
        if argument.name in FIRST_TENSOR_NAMES and self.inputs[0].accepts(argument):
            self.decide(first, self.inputs[0], Evidence.FIRST_TENSOR)

    def pass_in(self, position: int, output: int, evidence: Evidence) -> None:
        self.passed_in[position] = output, evidence
        self.open.remove(position)

    def match_passed_in(self) -> None:
        """An argument that the schema writes and no input takes may be an output that the caller passes in."""
        inputs = {p.name for p in self.prototype.inputs}
        rounds: tuple[tuple[Callable[[str, str], bool], Evidence], ...] = (
            (lambda a, o: a == o, Evidence.SAME_NAME),
            (lambda a, o: normalize(a) == normalize(o), Evidence.NORMALIZED),
            (are_synonyms, Evidence.SYNONYM),
        )
        for same, evidence in rounds:
            taken = {output for output, _ in self.passed_in.values()}
            free = [n for n, o in enumerate(self.prototype.outputs) if o.name not in inputs and n not in taken]
            possible = {
                position: [
                    n for n in free if same(self.schema.arguments[position].name, self.prototype.outputs[n].name)
                ]
                for position in self.open
                if self.schema.arguments[position].mutated
            }
            for position, output in only_pairs(possible):
                self.pass_in(position, output, evidence)

    def decide(self, position: int, target: _Target, evidence: Evidence, wanted: Argument | None = None) -> None:
        argument = self.schema.arguments[position]
        wanted = wanted or Argument(target.name)
        hook = wanted.convert
        conversion, reason, numbers = Conversion.DIRECT, "", None
        if target.is_input:
            if not argument.is_tensor:
                conversion = Conversion.CONST
        elif isinstance(target.parameter, Attr) and (hook is None or hook is int or hook is dtype_number):
            numbers, reason = self.attr_numbers(argument, target.parameter, hook)
            conversion = Conversion.DTYPE if numbers is Numbers.TORCH else Conversion.DIRECT
            hook = hook if hook is int and numbers is None else None
        target.source = Source(position, evidence, conversion, hook, wanted.default, wanted.copy, reason, numbers)
        self.open.remove(position)

    def attr_numbers(self, argument: SchemaArgument, attr: Attr, hook: Any) -> tuple[Numbers | None, str]:
        """Whether a value is a dtype, and whose number of one; None for any other, which goes into the attr as it is.

        The one place where this is decided: the converter, the meta function and the eager kernel follow it.
        """
        if hook is dtype_number or attr.type in (AttrType.TYPE, AttrType.LIST_TYPE):
            return Numbers.TORCH, ""
        by_relation = bool({argument.name, attr.name} & self.dtype_names)
        if self.own is not None:
            numbers = self.own.dtype_ints.get(attr.name)
            reason = "the relation takes it for a dtype" if by_relation else ""
            return numbers, reason if numbers is Numbers.TORCH else ""
        if argument.kind is _K.DTYPE:
            return self.dtype_numbers(argument, attr) if hook is None else (None, "")
        if argument.kind is not _K.INT or attr.type is not AttrType.INT:
            return None, ""
        if not by_relation and not (is_dtype_name(argument.name) and is_dtype_name(attr.name)):
            return None, ""
        if hook is int:
            return Numbers.GE, "GE's own number of a dtype, as arguments= says"
        # An int that may be torch's number of a dtype: what both sides write as default tells, or nothing does.
        if argument.has_default and argument.default is not None:
            plain = not attr.required and argument.default == attr.default
            number = ge_dtype_of_number(argument.default)
            translated = not attr.required and number is not None and number == attr.default
            if translated and not plain:
                return (
                    Numbers.TORCH,
                    f"torch's number of a dtype: {argument.default} is {_shown(number)}, the default",
                )
            if plain and not translated:
                return Numbers.GE, f"GE's own number: both defaults are {argument.default}"
            if argument.default >= NPU_DTYPE_OFFSET:
                return Numbers.TORCH, f"torch_npu's number of a dtype: the default is {argument.default}"
        raise self.refuse(
            f"int {argument.name} → Int {attr.name}: is it torch's number of a dtype or GE's own? "
            f'Write ("{attr.name}", ascend_graph.dtype_number) for the first, ("{attr.name}", int) for the second',
            {argument.name: f'("{attr.name}", ascend_graph.dtype_number)'},
        )

    def dtype_numbers(self, argument: SchemaArgument, attr: Attr) -> tuple[Numbers, str]:
        """A ``ScalarType`` for an attr of another type: its number, unless the attr's values have a meaning of their own."""
        if attr.required or not isinstance(attr.default, int) or attr.default in _GE_DTYPE_NUMBERS:
            return Numbers.TORCH, ""
        question = (
            f"the default {attr.default!r} of {attr.name} is no dtype of GE, so its values have a meaning of their own"
        )
        table = f'("{attr.name}", {{torch.float16: …}})'
        raise self.refuse(
            f"ScalarType {argument.name} → Int {attr.name}: {question}; say which: {table}", {argument.name: table}
        )

    # ------------------------------------------------------------------------------------------------------ leftovers

    def check_complete(self) -> None:
        arguments = self.schema.arguments
        hungry = [target for target in self.targets if target.source is None and target.must_be_fed]
        free = [target for target in self.targets if target.source is None]
        stuck = [n for n in self.open if not (arguments[n].has_default or arguments[n].optional)]
        # A default that only one side applies would be a silent difference, if the two mean the same.
        doubtful = [
            n
            for n in self.open
            if n not in stuck
            and arguments[n].default is not None
            and any(not target.is_input and target.accepts(arguments[n]) for target in free)
        ]
        # GE works out the dtypes it is given: an argument about them that it has nothing for says that more is done.
        dtypes = [
            n
            for n in self.open
            if n not in stuck
            and n not in doubtful
            and arguments[n].kind in (_K.INT, _K.DTYPE)
            and is_dtype_name(arguments[n].name)
        ]
        if not (hungry or stuck or doubtful or dtypes):
            return
        problems = [f"nothing feeds {_kind_of(target)} {target.name}" for target in hungry]
        problems += [f"nothing takes the argument {arguments[n].type_text} {arguments[n].name}" for n in stuck]
        problems += [
            f"{arguments[n].name}={arguments[n].default!r} may be an attr by another name, or none at all"
            for n in doubtful
        ]
        problems += [
            f"{arguments[n].name} is about a dtype, and {self.prototype.op_type} has nothing for it: None says that it stays at "
            f"{arguments[n].default!r}"
            for n in dtypes
        ]
        suggestion = self.suggestion([*stuck, *doubtful], hungry, free)
        hint = "; 'shape only' is for an argument that only shapes need" if stuck else ""
        raise self.refuse("; ".join(problems) + hint, suggestion | {arguments[n].name: "None" for n in dtypes})

    def suggestion(self, stuck: Sequence[int], hungry: Sequence[_Target], free: Sequence[_Target]) -> dict[str, str]:
        """What to write: pairs only where names most likely mean the same and types agree, "…" for what cannot be told."""
        arguments = self.schema.arguments
        near = {n: [t for t in free if self.goes_with(arguments[n], t)] for n in (self.open if hungry else stuck)}
        pairs = {n: repr(target.name) for n, target in only_pairs(near)}
        paired = {target.name for _, target in only_pairs(near)}
        inputs = {p.name for p in self.prototype.inputs}
        outputs = [o.name for o in self.prototype.outputs if o.name not in inputs]
        near_outputs = {
            n: [o for o in outputs if likely_same(arguments[n].name, o)] for n in stuck if arguments[n].mutated
        }
        pairs |= {n: repr(name) for n, name in only_pairs(near_outputs) if n not in pairs}
        lines = {arguments[n].name: pairs.get(n, "…") for n in sorted({*stuck, *pairs})}
        return lines | {target.name: "…" for target in hungry if target.name not in paired}

    @staticmethod
    def goes_with(argument: SchemaArgument, target: _Target) -> bool:
        """Whether an argument most likely is an input or attr that has another name."""
        return (
            target.is_input == argument.is_tensor
            and target.accepts(argument)
            and likely_same(argument.name, target.name)
        )

    def doubts(self) -> tuple[str, ...]:
        """What is unsaid although everything is bound: inputs and attrs that may be what an argument that goes nowhere is."""
        arguments = self.schema.arguments
        found = []
        idle = [n for n in self.open if arguments[n].has_default or arguments[n].optional]
        free = [target for target in self.targets if target.source is None and not target.must_be_fed]
        for n in idle:
            argument = arguments[n]
            fitting = [t for t in free if t.is_input == argument.is_tensor and t.accepts(argument)]
            if argument.default is not None or not fitting:
                continue
            likely = [t for t in fitting if self.goes_with(argument, t)]
            names = ", ".join(t.name for t in fitting)
            line = repr(likely[0].name) if len(likely) == 1 else "…"
            found.append(
                f"argument {argument.type_text} {argument.name} goes nowhere, and nothing feeds {names}. "
                f"Write: arguments={{{argument.name!r}: {line}}}, or {{{argument.name!r}: None}} if it stays at None in graphs"
            )
        for target in free:
            owner = self.property_owner(target)
            if isinstance(target.parameter, Attr) and owner is not None:
                default = _shown(target.parameter.default)
                found.append(
                    f"attr {target.name} stays at {default}, but looks like a property of {owner}. Write: "
                    f"arguments={{{target.name!r}: lambda arguments: …}}, or {{{target.name!r}: {default}}} if it shall be that"
                )
        return tuple(f"{self.schema.qualified_name} ↔ {self.prototype.op_type}: {doubt}" for doubt in found)

    def property_owner(self, target: _Target) -> str | None:
        """What an attr of integers looks like a stride or a size of: an input by its name, or in words some tensor."""
        if not isinstance(target.parameter, Attr) or target.parameter.type not in (AttrType.INT, AttrType.LIST_INT):
            return None
        named = words(target.name)
        if not _PROPERTIES.intersection(named):
            return None
        own = tuple(word for word in named if word not in _PROPERTIES and not word.isdigit())
        owner = next((i.name for i in self.inputs if words(i.name) and words(i.name) == own), None)
        # A stride by itself is a parameter, as of a convolution.
        if owner is None and _STRIDES.intersection(named) and len(named) > 1:
            return "a tensor"
        return owner

    # -------------------------------------------------------------------------------------------------------- outputs

    # --------------------------------------------------------------------------------------------------------- errors

    def refuse(self, message: str, lines: Mapping[str, str] | None = None) -> BindingError:
        text = f"{self.schema.qualified_name} ↔ {self.prototype.op_type}: {message}\n{side_by_side(self.schema, self.prototype)}"
        if lines:
            merged = {key: _written(value) for key, value in self.explicit.items()} | dict(lines)
            text += f"\nWrite: arguments={{{', '.join(f'{key!r}: {value}' for key, value in merged.items())}}}"
        return BindingError(text)


def side_by_side(schema: OpSchema, prototype: OpPrototype) -> str:
    """Both signatures, the schema on the left, the prototype on the right, as lines of text."""
    left = [f"{schema.qualified_name}("]
    for argument in schema.arguments:
        default = f"={argument.default!r}" if argument.has_default else ""
        left.append(f"  {argument.type_text} {argument.name}{default}")
    left.append(f") -> ({', '.join(f'{r.type_text} {r.name}'.strip() for r in schema.returns)})")
    right = [f"REG_OP({prototype.op_type})", *(f"  {call}" for call in reg_op_calls(prototype))]
    return columns(left, [line if len(line) <= 90 else line[:89] + "…" for line in right])


def _names(targets: Iterable[_Target]) -> str:
    return ", ".join(target.name for target in targets) or "none"


def _kind_of(target: _Target) -> str:
    parameter = target.parameter
    if isinstance(parameter, Parameter):
        return f"the {parameter.kind.value} input"
    return f"the {'required' if parameter.required else 'optional'} {parameter.type.value} attr"


def _shown(value: Any) -> str:
    return getattr(value, "ge_name", None) or repr(value)


def _written(value: Any) -> str:
    return repr(value) if isinstance(value, str | int | float | bool | None | list | tuple) else "…"
