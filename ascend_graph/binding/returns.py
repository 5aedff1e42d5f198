"""Matching of a schema's returns and written arguments to a prototype's outputs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ascend_graph.binding.bound import Evidence, Mutation, ReturnSource
from ascend_graph.binding.errors import BindingError
from ascend_graph.binding.matching import only_pairs
from ascend_graph.binding.op_schema import ArgumentKind, OpSchema, SchemaReturn
from ascend_graph.binding.synonyms import likely_same, normalize
from ascend_graph.prototypes import OpPrototype, ParameterKind

#: The key of ``arguments=`` that names the prototype's outputs in the order of the schema's returns.
RETURNS = "->"


@dataclass(frozen=True, slots=True)
class ReturnSearch:
    """Search for the outputs of a schema's returns; the arguments are settled before."""

    schema: OpSchema
    prototype: OpPrototype
    #: The value of ``arguments=`` for the key :data:`RETURNS`.
    explicit: Any
    #: The relation's names of the outputs, in its order.
    output_names: Sequence[str]
    #: The outputs that the caller passes in, by argument position.
    passed_in: Mapping[int, tuple[int, Evidence]]
    #: The inputs that arguments feed.
    fed: Mapping[int, str]
    #: True if nothing may stay open.
    complete: bool
    refuse: Callable[..., BindingError]

    def found(self) -> tuple[list[ReturnSource], list[Mutation]]:
        """Return the output of each return, and the outputs of written arguments."""
        in_place = self.in_place_outputs()
        found = self.returned_arguments(in_place)
        mutated = {*in_place, *self.passed_in, *(r.argument for r in found.values())}
        taken = {*in_place.values(), *(output for output, _ in self.passed_in.values())}
        taken |= self.add_named(found)
        open_outputs = [n for n in range(len(self.prototype.outputs)) if n not in taken]
        open_returns = [n for n in range(len(self.schema.returns)) if n not in found]
        if open_returns and not self.complete:
            fits = len(open_returns) == len(open_outputs) == 1
            output, evidence = (open_outputs[0], Evidence.ONLY) if fits else (None, Evidence.UNSETTLED)
            found |= {n: ReturnSource(output, evidence) for n in open_returns}
        elif open_returns:
            self.add_in_order(found, open_returns, open_outputs)
            open_outputs = []
        mutations = [Mutation(position, output, True) for position, output in in_place.items()]
        mutations += [Mutation(position, output, False) for position, (output, _) in self.passed_in.items()]
        elsewhere = [n for n, argument in enumerate(self.schema.arguments) if argument.mutated and n not in mutated]
        mutations += self.mutated_elsewhere(elsewhere, found, in_place, open_outputs)
        return [found[n] for n in range(len(self.schema.returns))], mutations

    def in_place_outputs(self) -> dict[int, int]:
        """Return, by written argument, the output that has the name of its input."""
        by_name = {output.name: n for n, output in enumerate(self.prototype.outputs)}
        return {
            position: by_name[self.fed[position]]
            for position, argument in enumerate(self.schema.arguments)
            if argument.mutated and self.fed.get(position) in by_name
        }

    def returned_arguments(self, in_place: Mapping[int, int]) -> dict[int, ReturnSource]:
        """Return the sources of returns that are arguments: those that the prototype writes, or the caller passes in."""
        positions = {argument.name: n for n, argument in enumerate(self.schema.arguments)}
        found: dict[int, ReturnSource] = {}
        for n, value in enumerate(self.schema.returns):
            if value.alias_of is None:
                continue
            position = positions[value.alias_of]
            if position in self.passed_in:
                found[n] = ReturnSource(*self.passed_in[position], position)
            elif position in in_place:
                found[n] = ReturnSource(in_place[position], Evidence.IN_PLACE, position)
        return found

    def add_named(self, found: dict[int, ReturnSource]) -> set[int]:
        """Add the returns whose output a name tells, and return these outputs."""
        by_name = {output.name: n for n, output in enumerate(self.prototype.outputs)}
        names = self.explicit_returns(self.explicit) if self.explicit is not None else ()
        taken = set()
        for n, value in enumerate(self.schema.returns):
            if n in found and not names:
                continue
            if names and not isinstance(names[n], str):
                found[n] = ReturnSource(None, Evidence.EXPLICIT, compute=names[n])
                continue
            choice = self.named_output(n, value, names, by_name)
            if choice is not None:
                found[n] = ReturnSource(choice[0], choice[1], found[n].argument if n in found else None)
                taken.add(choice[0])
        return taken

    def add_in_order(
        self, found: dict[int, ReturnSource], open_returns: Sequence[int], open_outputs: Sequence[int]
    ) -> None:
        """Add the returns that no name settles, in the order of the outputs that are left."""
        outputs = self.prototype.outputs
        # Which place an op's rewritten inputs have among its returns is a matter of taste: both orders occur.
        mixed = len(open_returns) > 1 and any(outputs[n].name in self.prototype.in_place for n in open_outputs)
        fits = len(open_returns) == len(open_outputs) and self.kinds_agree(open_returns, open_outputs)
        if len(self.schema.returns) > len(outputs) and len(open_returns) > len(open_outputs):
            raise self.refuse(
                f"the schema has {len(self.schema.returns)} returns, and {self.prototype.op_type} {len(outputs)} output(s); "
                "expected an output for each return. Write a function of the arguments where one is computed, or None where "
                "graphs do not have it",
                {RETURNS: self.output_proposal(found, open_returns, open_outputs)},
            )
        if mixed or not fits:
            raise self.refuse(
                f"{len(open_returns)} return(s) without a name, {len(open_outputs)} output(s) left "
                f"({', '.join(outputs[n].name for n in open_outputs) or 'none'}); say which is which",
                {RETURNS: self.output_proposal(found, open_returns, open_outputs)},
            )
        positions = {argument.name: n for n, argument in enumerate(self.schema.arguments)}
        evidence = Evidence.ONLY if len(open_returns) == 1 else Evidence.POSITION
        for n, output in zip(open_returns, open_outputs, strict=True):
            owner = self.schema.returns[n].alias_of
            found[n] = ReturnSource(output, evidence, None if owner is None else positions[owner])

    def doubtful_order(self, returns: Sequence[ReturnSource]) -> str | None:
        """Return a doubt if returns without names follow a relation whose order is not the prototype's."""
        nameless = [n for n, value in enumerate(self.schema.returns) if not value.name]
        by_relation = [n for n in nameless if returns[n].evidence is Evidence.RELATION and returns[n].argument is None]
        followed = [output for n in by_relation if (output := returns[n].output) is not None]
        if followed == sorted(followed):
            return None
        lines = []
        for order in (followed, sorted(followed)):
            chosen = dict(zip(by_relation, order, strict=True))
            places = (chosen.get(n, r.output) for n, r in enumerate(returns))
            names = tuple(None if place is None else self.prototype.outputs[place].name for place in places)
            lines.append(f"arguments={{{RETURNS!r}: {names!r}}}")
        return (
            "its returns have no names; they are taken in the relation's order, which is not the prototype's. "
            f"Write: {lines[0]} if the eager kernel returns them so, or {lines[1]} if it returns them in the prototype's order"
        )

    def mutated_elsewhere(
        self,
        positions: Sequence[int],
        found: Mapping[int, ReturnSource],
        in_place: Mapping[int, int],
        open_outputs: Sequence[int],
    ) -> Iterator[Mutation]:
        """Yield the outputs of written arguments whose input has another name: a return of theirs, or the one left."""
        for position in positions:
            owner_return = next((r for r in found.values() if r.argument == position and r.output is not None), None)
            if owner_return is not None and owner_return.output is not None:
                yield Mutation(position, owner_return.output, False)
            elif len(open_outputs) == 1 and len(positions) == 1:
                yield Mutation(position, open_outputs[0], False)
            elif self.complete:
                argument = self.schema.arguments[position]
                names = ", ".join(output.name for output in self.prototype.outputs) or "none"
                raise self.refuse(
                    f"the schema writes {argument.name}, but no output of {self.prototype.op_type} holds its new value "
                    f"(outputs: {names}). If the operator only reads it, write: {self.without_annotations(found, in_place)}"
                )

    def without_annotations(self, found: Mapping[int, ReturnSource], in_place: Mapping[int, int]) -> str:
        """Return the schema without marks on arguments that the prototype does not write, and on their returns."""
        kept = {*in_place, *self.passed_in, *(r.argument for r in found.values())}
        text = self.schema.text
        for n, argument in enumerate(self.schema.arguments):
            mark = re.search(rf"\((\w+)!(?: -> [^)]*)?\)(?=[\[\]?]* {argument.name}\b)", text)
            if argument.mutated and n not in kept and mark is not None:
                text = re.sub(rf"\({mark[1]}!(?: -> [^)]*)?\)", "", text)
        return text

    def explicit_returns(self, value: Any) -> tuple[Any, ...]:
        names = tuple(value) if isinstance(value, tuple | list) else (value,)
        known = [output.name for output in self.prototype.outputs]
        good = all(name is None or callable(name) or (isinstance(name, str) and name in known) for name in names)
        if len(names) != len(self.schema.returns) or not good:
            raise self.refuse(
                f"arguments={{{RETURNS!r}: {value!r}}}: name one output for each of the {len(self.schema.returns)} "
                f"return(s); outputs: {', '.join(known) or 'none'}; of a return that is not an output, write a function of all arguments "
                "that computes it, or None if graphs do not have it"
            )
        outputs = [name for name in names if isinstance(name, str)]
        if len(set(outputs)) != len(outputs):
            raise self.refuse(f"arguments={{{RETURNS!r}: {value!r}}} names an output twice; name each once")
        return names

    def named_output(
        self, position: int, value: SchemaReturn, names: tuple[Any, ...], by_name: Mapping[str, int]
    ) -> tuple[int, Evidence] | None:
        if names:
            return by_name[names[position]], Evidence.EXPLICIT
        if len(self.output_names) == len(self.schema.returns) and all(name in by_name for name in self.output_names):
            return by_name[self.output_names[position]], Evidence.RELATION
        if not value.name:
            return None
        if value.name in by_name:
            return by_name[value.name], Evidence.SAME_NAME
        same = [n for name, n in by_name.items() if normalize(name) == normalize(value.name)]
        return (same[0], Evidence.NORMALIZED) if len(same) == 1 else None

    def kinds_agree(self, returns: Sequence[int], outputs: Sequence[int]) -> bool:
        return all(
            self.schema.returns[r].kind is ArgumentKind.TENSOR
            and (self.schema.returns[r].list_depth == 1) == (self.prototype.outputs[o].kind is ParameterKind.DYNAMIC)
            for r, o in zip(returns, outputs, strict=True)
        )

    def output_proposal(self, found: Mapping[int, ReturnSource], returns: Sequence[int], left: Sequence[int]) -> str:
        outputs = self.prototype.outputs
        near = {n: [m for m in left if likely_same(self.schema.returns[n].name, outputs[m].name)] for n in returns}
        settled = dict(only_pairs(near)) | {n: r.output for n, r in found.items()}
        if len(returns) == len(left) == 1:
            settled |= {returns[0]: left[0]}
        names = [settled.get(n) for n in range(len(self.schema.returns))]
        texts = ["…" if index is None else repr(outputs[index].name) for index in names]
        return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"
