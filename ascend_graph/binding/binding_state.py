"""State of a search for a binding, and the errors about its open parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ascend_graph.binding.bound import Evidence
from ascend_graph.binding.dtype_ints import is_dtype_name, used_as_dtype
from ascend_graph.binding.errors import BindingError, columns
from ascend_graph.binding.generated_schema import OperatorSchema
from ascend_graph.binding.matching import only_pairs
from ascend_graph.binding.op_schema import ArgumentKind, OpSchema, SchemaArgument
from ascend_graph.binding.synonyms import likely_same, words
from ascend_graph.binding.targets import BindingTarget, kind_of
from ascend_graph.prototypes import Attr, AttrType, OpPrototype
from ascend_graph.prototypes.writer import reg_op_calls
from ascend_graph.shapes import Relation

_STRIDES = frozenset({"stride", "strides"})


#: Words for properties that a tensor has by itself.
_PROPERTIES = _STRIDES | {"dim", "dims", "size", "sizes", "shape", "len", "length", "rank", "numel"}


class BindingState:
    """State of a search for a binding, with its open parts."""

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
        self.inputs = [BindingTarget(parameter, n) for n, parameter in enumerate(prototype.inputs)]
        self.attrs = [BindingTarget(attr, n) for n, attr in enumerate(prototype.attrs)]
        self.targets = [*self.inputs, *self.attrs]
        self.open = list(range(len(schema.arguments)))
        self.ignored: list[int] = []
        self.shape_only: list[int] = []
        #: The outputs that the caller passes in, by argument position.
        self.passed_in: dict[int, tuple[int, Evidence]] = {}

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
            and arguments[n].kind in (ArgumentKind.INT, ArgumentKind.DTYPE)
            and is_dtype_name(arguments[n].name)
        ]
        if not (hungry or stuck or doubtful or dtypes):
            return
        problems = [f"nothing feeds {kind_of(target)} {target.name}" for target in hungry]
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
        suggestion, guessed = self.suggestion([*stuck, *doubtful], hungry, free)
        hint = "; 'shape only' is for an argument that only shapes need" if stuck else ""
        lines = suggestion | {arguments[n].name: "None" for n in dtypes}
        raise self.refuse("; ".join(problems) + hint, lines, guessed)

    def suggestion(
        self, stuck: Sequence[int], hungry: Sequence[BindingTarget], free: Sequence[BindingTarget]
    ) -> tuple[dict[str, str], list[str]]:
        """Return the lines to write, and those of them that types alone suggest.

        They are pairs of likely the same meaning, then those that are the only ones of a type, "…" for others.
        """
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
        guessed = self.only_ones([n for n in stuck if n not in pairs], [t for t in hungry if t.name not in paired])
        left = [n for n in self.open if n not in stuck and n not in pairs and arguments[n].is_tensor]
        guessed |= (
            self.only_ones(left, [t for t in free if t not in hungry and t.name not in paired]) if guessed else {}
        )
        pairs |= {n: repr(target.name) for n, target in guessed.items()}
        paired |= {target.name for target in guessed.values()}
        lines = {arguments[n].name: pairs.get(n, "…") for n in sorted({*stuck, *pairs})}
        lines |= {target.name: "…" for target in hungry if target.name not in paired}
        return lines, [f"{arguments[n].name} and {target.name}" for n, target in guessed.items()]

    def only_ones(self, positions: Sequence[int], targets: Sequence[BindingTarget]) -> dict[int, BindingTarget]:
        """Return the pairs of which each is the only one that its type allows."""
        arguments = self.schema.arguments
        fitting = {
            n: [t for t in targets if t.is_input == arguments[n].is_tensor and t.accepts(arguments[n])]
            for n in positions
        }
        return dict(only_pairs(fitting))

    @staticmethod
    def goes_with(argument: SchemaArgument, target: BindingTarget) -> bool:
        """Return whether an argument is most likely this input or attr; numbers may be an input's values."""
        return (
            (target.is_input or not argument.is_tensor)
            and target.accepts(argument)
            and likely_same(argument.name, target.name)
        )

    def doubts(self) -> list[str]:
        """Return doubts about a complete binding: unused arguments with a free match, attrs like a tensor's stride."""
        arguments = self.schema.arguments
        found = []
        idle = [n for n in self.open if arguments[n].has_default or arguments[n].optional]
        free = [target for target in self.targets if target.source is None and not target.must_be_fed]
        alike = {n: [t for t in free if self.goes_with(arguments[n], t)] for n in idle}
        for n in idle:
            argument, likely = arguments[n], alike[n]
            # What another argument is called like is not this one's.
            others = [t.name for m in idle if m != n for t in alike[m]]
            fitting = likely or [
                t for t in free if t.is_input == argument.is_tensor and t.accepts(argument) and t.name not in others
            ]
            if argument.default is not None or not fitting:
                continue
            names = ", ".join(t.name for t in fitting)
            line = repr(likely[0].name) if len(likely) == 1 else "…"
            found.append(
                f"argument {argument.type_text} {argument.name} goes nowhere, and nothing feeds {names}. "
                f"Write: arguments={{{argument.name!r}: {line}}}, or {{{argument.name!r}: None}} if it stays at None in graphs"
            )
        for target in free:
            owner = self.property_owner(target)
            if isinstance(target.parameter, Attr) and owner is not None:
                default = shown(target.parameter.default)
                found.append(
                    f"attr {target.name} stays at {default}, but looks like a property of {owner}. Write: "
                    f"arguments={{{target.name!r}: lambda arguments: …}}, or {{{target.name!r}: {default}}} if it shall be that"
                )
        return found

    def property_owner(self, target: BindingTarget) -> str | None:
        """Return the owner of an attr that looks like a stride or a size: an input's name, "a tensor", or None."""
        if not isinstance(target.parameter, Attr) or target.parameter.type not in (AttrType.INT, AttrType.LIST_INT):
            return None
        named = words(target.name)
        if not _PROPERTIES.intersection(named):
            return None
        own = tuple(word for word in named if word not in _PROPERTIES and not word.isdigit())
        owner = next((i.name for i in self.inputs if words(i.name) and words(i.name) == own), None)
        if owner is None and _STRIDES.intersection(named):
            return "a tensor"
        return owner

    def refuse(self, message: str, lines: Mapping[str, str] | None = None, guessed: Sequence[str] = ()) -> BindingError:
        text = f"{self.schema.qualified_name} ↔ {self.prototype.op_type}: {message}\n{side_by_side(self.schema, self.prototype)}"
        if lines:
            merged = {key: _written(value) for key, value in self.explicit.items()} | dict(lines)
            text += f"\nWrite: arguments={{{', '.join(f'{key!r}: {value}' for key, value in merged.items())}}}"
        if guessed:
            text += f"  # if {', '.join(guessed)} mean the same: types alone suggest it"
        return BindingError(text)


def side_by_side(schema: OpSchema, prototype: OpPrototype) -> str:
    """Return both signatures as lines of text: the schema on the left, the prototype on the right."""
    left = [f"{schema.qualified_name}("]
    for argument in schema.arguments:
        default = f"={argument.default!r}" if argument.has_default else ""
        left.append(f"  {argument.type_text} {argument.name}{default}")
    left.append(f") -> ({', '.join(f'{r.type_text} {r.name}'.strip() for r in schema.returns)})")
    right = [f"REG_OP({prototype.op_type})", *(f"  {call}" for call in reg_op_calls(prototype))]
    return columns(left, [line if len(line) <= 90 else line[:89] + "…" for line in right])


def shown(value: Any) -> str:
    return getattr(value, "ge_name", None) or repr(value)


def _written(value: Any) -> str:
    return repr(value) if isinstance(value, str | int | float | bool | None | list | tuple) else "…"
