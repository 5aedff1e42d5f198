"""Binding of a schema's arguments and returns to a prototype's inputs, attrs and outputs.

A binding is found once, from names, and checked once. Position alone never binds an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ascend_graph.binding.binding_state import BindingState, shown
from ascend_graph.binding.bound import Argument, Binding, Conversion, Evidence, ValueSource
from ascend_graph.binding.dtype_ints import Numbers, is_dtype_name
from ascend_graph.binding.dtypes import NPU_DTYPE_OFFSET, dtype_number, ge_dtype_of_number
from ascend_graph.binding.generated_schema import OperatorSchema
from ascend_graph.binding.matching import either_reading, only_pairs, only_readings
from ascend_graph.binding.op_schema import ArgumentKind, OpSchema, SchemaArgument
from ascend_graph.binding.returns import RETURNS, ReturnSearch
from ascend_graph.binding.synonyms import (
    ENDINGS,
    FIRST_TENSOR_NAMES,
    are_known_synonyms,
    differ_in_endings,
    normalize,
)
from ascend_graph.binding.targets import BindingTarget, kind_of, names_of
from ascend_graph.prototypes import Attr, AttrType, DataType, OpPrototype
from ascend_graph.shapes import Relation

_GE_DTYPE_NUMBERS = frozenset(map(int, DataType))

#: The value of ``arguments=`` for an argument that only the shapes of outputs need, and GE has nothing for.
SHAPE_ONLY = "shape only"


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
        arguments: The pairs that names do not settle.

            - ``"torch name": "GE name"`` renames;
            - ``"torch name": ("GE name", hook)`` also converts each value, with a function or a table of allowed ones;
            - ``"torch name": Argument(…)`` is the long form;
            - ``"torch name": None``: GE has nothing for the argument, which then has to stay at its default;
            - ``"torch name": "shape only"``: GE has nothing for it, and only the shapes of outputs need it;
            - ``"torch name": "GE output"`` of an argument ``Tensor(a!)``: the caller passes the output in;
            - ``"GE name": value`` is for an attr or a constant input that the schema lacks: its value, or a function of
              all arguments (a mapping by torch name) that computes it;
            - ``"->": ("GE output", …)`` names the output of each return. For a return that is not an output, write a
              function of all arguments that computes it, or None if graphs do not have it.
        relation: The shape relation, in the prototype's names or the schema's. It may name the outputs, and it tells
            which inputs are promoted to one dtype and which attrs are dtypes.
        own: The generated schema, if the schema was made from the prototype. It tells whose dtype numbers each attr
            takes.
        complete: If true, nothing may be left over, as for a converter; otherwise undecidable parts stay open.

    Raises:
        BindingError: Something is left over or ambiguous; the message shows both signatures, and the line to write.

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


class _Matcher(BindingState):
    """State of one search; decisions are never revised."""

    def binding(self) -> Binding:
        self.take_explicit()
        self.match_same_names()
        self.match_alike(lambda a, b: normalize(a) == normalize(b), Evidence.NORMALIZED)
        self.match_alike(differ_in_endings, Evidence.ENDING)
        self.match_first_tensor()
        self.match(lambda a, t: are_known_synonyms(a.name, t.name), Evidence.SYNONYM)
        self.match_passed_in()
        doubts = self.doubts() if self.complete else []
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
        if self.complete and (doubt := search.doubtful_order(returns)):
            doubts.append(doubt)
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
            doubts=tuple(f"{self.schema.qualified_name} ↔ {self.prototype.op_type}: {doubt}" for doubt in doubts),
        )

    def is_copied(self, name: str, source: ValueSource, written: set[int]) -> bool:
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
                raise self.refuse(
                    f"arguments={{{argument.name!r}: None}}: {argument.name} has no default to stay at; name the input "
                    "or attr that it feeds"
                )
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
            raise self.refuse(
                f"{self.prototype.op_type} has no input or attr {name!r}; it has {names_of(self.targets)}"
            )
        # A name that is both an input and an attr: tensors go to the input.
        candidates.sort(key=lambda target: target.is_input != argument.is_tensor)
        target = candidates[0]
        if wanted.convert is None and not target.accepts(argument):
            raise self.refuse(
                f"{argument.type_text} {argument.name} cannot feed {kind_of(target)} {name}; expected an argument of "
                "its type"
            )
        if target.source is not None:
            raise self.refuse(f"arguments= feeds {name} twice; leave one of them out")
        self.decide(position, target, Evidence.EXPLICIT, wanted)

    def take_value(self, name: str, value: Any) -> None:
        target = next((target for target in (*self.attrs, *self.inputs) if target.name == name), None)
        if target is None:
            known = ", ".join(argument.name for argument in self.schema.arguments)
            raise self.refuse(
                f"arguments= mentions {name!r}; expected an argument ({known}), or an input or attr of "
                f"{self.prototype.op_type} ({names_of(self.targets)})"
            )
        if target.source is not None:
            raise self.refuse(f"arguments= feeds {name} twice; leave one of them out")
        conversion = Conversion.CONST if target.is_input else Conversion.DIRECT
        target.source = ValueSource(None, Evidence.EXPLICIT, conversion, value=value)

    # -------------------------------------------------------------------------------------------------------- rounds

    def match_same_names(self) -> None:
        by_name: dict[str, list[BindingTarget]] = {}
        for target in self.targets:
            if target.source is None:
                by_name.setdefault(target.name, []).append(target)
        self.match_among({n: by_name.get(self.schema.arguments[n].name, ()) for n in self.open}, Evidence.SAME_NAME)

    def match(self, same: Callable[[SchemaArgument, BindingTarget], bool], evidence: Evidence) -> None:
        free = [target for target in self.targets if target.source is None]
        arguments = self.schema.arguments
        self.match_among({n: [t for t in free if same(arguments[n], t)] for n in self.open}, evidence)

    def match_among(self, alike: Mapping[int, Sequence[BindingTarget]], evidence: Evidence) -> None:
        """Pair arguments with targets of names that mean the same, if the pair is unambiguous."""
        possible = {}
        for position, targets in alike.items():
            argument = self.schema.arguments[position]
            found = [target for target in targets if target.accepts(argument)]
            # A name that is both an input and an attr: tensors go to the input, the rest to the attr.
            possible[position] = [target for target in found if target.is_input == argument.is_tensor] or found
        for position, target in only_pairs(possible):
            self.decide(position, target, evidence)

    def match_alike(self, alike: Callable[[str, str], bool], evidence: Evidence) -> None:
        """Pair names that differ only in case or an ending, if the pair is unambiguous.

        Raises:
            BindingError: Several readings are possible, and one of them is still free.
        """
        if not self.open:
            return
        arguments = self.schema.arguments
        settled = {t.source.argument for t in self.targets if t.is_settled and t.source is not None}
        positions = [n for n in range(len(arguments)) if n not in settled]

        def reads(position: int, target: BindingTarget) -> bool:
            argument = arguments[position]
            fits = alike(argument.name, target.name) and target.accepts(argument)
            return fits and (target.is_input == argument.is_tensor or not self.has_namesake(target))

        open_ = [n for n in self.open if n in positions]
        targets = [target for target in self.targets if not target.is_settled]
        pairs, doubtful = only_readings(positions, targets, reads, open_, lambda target: target.source is None)
        if doubtful and self.complete:
            named = [(arguments[n].name, [target.name for target in found]) for n, found in doubtful.items()]
            raise self.refuse(either_reading(named), dict.fromkeys((name for name, _ in named), "…"))
        for position, target in pairs:
            self.decide(position, target, evidence)

    def has_namesake(self, target: BindingTarget) -> bool:
        """Return whether an input and an attr share this name: tensors go to the input, the rest to the attr."""
        return sum(other.name == target.name for other in self.targets) > 1

    def match_first_tensor(self) -> None:
        """Pair ``self`` or ``input`` of the schema with the first input, if both are still free."""
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
        """Pair arguments that the schema writes and no input takes with outputs that the caller passes in."""
        if not any(self.schema.arguments[n].mutated for n in self.open):
            return
        inputs = {p.name for p in self.prototype.inputs}
        arguments, outputs = self.schema.arguments, self.prototype.outputs
        rounds: tuple[tuple[Callable[[str, str], bool], Evidence], ...] = (
            (lambda a, o: a == o, Evidence.SAME_NAME),
            (lambda a, o: normalize(a) == normalize(o), Evidence.NORMALIZED),
            (lambda a, o: differ_in_endings(a, o, (*ENDINGS, "out")), Evidence.ENDING),
            (are_known_synonyms, Evidence.SYNONYM),
        )
        said = {n: output for n, (output, evidence) in self.passed_in.items() if evidence is Evidence.EXPLICIT}
        fresh = [n for n, o in enumerate(outputs) if o.name not in inputs and n not in said.values()]
        for same, evidence in rounds:
            taken = {output for output, _ in self.passed_in.values()}
            doubtful: dict[int, list[int]] = {}
            open_ = [n for n in self.open if arguments[n].mutated]

            def reads(position: int, output: int, same: Callable[[str, str], bool] = same) -> bool:
                return same(arguments[position].name, outputs[output].name)

            if evidence in (Evidence.SAME_NAME, Evidence.SYNONYM):
                possible = {n: [o for o in fresh if o not in taken and reads(n, o)] for n in open_}
                pairs = list(only_pairs(possible))
            else:
                positions = [*open_, *(n for n in self.passed_in if n not in said)]
                free = [o for o in fresh if o not in taken]
                pairs, doubtful = only_readings(positions, fresh, reads, open_, free.__contains__)
            if doubtful and self.complete:
                named = [(arguments[n].name, [outputs[o].name for o in found]) for n, found in doubtful.items()]
                raise self.refuse(either_reading(named), dict.fromkeys((name for name, _ in named), "…"))
            for position, output in pairs:
                self.pass_in(position, output, evidence)

    def decide(self, position: int, target: BindingTarget, evidence: Evidence, wanted: Argument | None = None) -> None:
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
        target.source = ValueSource(position, evidence, conversion, hook, wanted.default, wanted.copy, reason, numbers)
        self.open.remove(position)

    def attr_numbers(self, argument: SchemaArgument, attr: Attr, hook: Any) -> tuple[Numbers | None, str]:
        """Return whose dtype numbers the values of an attr are, and the reason; None if they are not dtypes.

        Only this method decides it: the converter, the meta function and the eager kernel follow it. A value that is
        not a dtype goes into the attr as it is.
        """
        if hook is dtype_number or attr.type in (AttrType.TYPE, AttrType.LIST_TYPE):
            return Numbers.TORCH, ""
        by_relation = bool({argument.name, attr.name} & self.dtype_names)
        if self.own is not None:
            numbers = self.own.dtype_ints.get(attr.name)
            reason = "the relation takes it for a dtype" if by_relation else ""
            return numbers, reason if numbers is Numbers.TORCH else ""
        if argument.kind is ArgumentKind.DTYPE:
            return self.dtype_numbers(argument, attr) if hook is None else (None, "")
        if argument.kind is not ArgumentKind.INT or attr.type is not AttrType.INT:
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
                    f"torch's number of a dtype: {argument.default} is {shown(number)}, the default",
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
        """Return torch's numbers for a ``ScalarType`` that feeds an attr of another type.

        Raise ``BindingError`` if the attr's values have a meaning of their own.
        """
        if attr.required or not isinstance(attr.default, int) or attr.default in _GE_DTYPE_NUMBERS:
            return Numbers.TORCH, ""
        question = f"the default {attr.default!r} of {attr.name} is not a dtype of GE, so its values have a meaning of their own"
        table = f'("{attr.name}", {{torch.float16: …}})'
        raise self.refuse(
            f"ScalarType {argument.name} → Int {attr.name}: {question}; say which: {table}", {argument.name: table}
        )
