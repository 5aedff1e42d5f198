"""Claims of a relation about an optional tensor that is given, as runs of such calls show."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import torch

from ascend_graph.inference.calls import SIZES, attr_dtypes
from ascend_graph.inference.conclusions.dtype_rules import Call
from ascend_graph.inference.domains import Domain
from ascend_graph.inference.experiments import STRUCTURES, DomainRuns, Experiments
from ascend_graph.inference.observed import compare_run, refusal
from ascend_graph.shapes import Relation, RelationError
from ascend_graph.shapes.syntax import bound_names

#: Sizes with which an input is broadcast.
_SMALL = (1, 2, 3)
#: Dtypes of an optional tensor, beside that of the first input.
_DTYPES = (torch.float32, torch.float64, torch.float16, torch.int64, torch.int32, torch.bool)


@dataclass(frozen=True, slots=True)
class Claim:
    """Claim about an optional tensor."""

    #: Its pattern; empty if its shape changes nothing.
    pattern: str = ""
    #: ``any``, ``equal`` to the first input's, or ``promoted``: some outputs have the common one; ``common``: that of the
    #: tensors alone, also where the rule without it makes floating ones of integers.
    dtype: str = "any"
    promoted: tuple[int, ...] = ()

    def demand(self, name: str, first: str) -> str:
        """Return the condition of a relation, or an empty text."""
        return f"{name} is None or dtype({name}) == dtype({first})" if self.dtype == "equal" else ""

    def rules(self, rules: Sequence[str], name: str, first: str) -> list[str]:
        """Return the outputs' dtype rules, given those without the tensor."""
        return [self.rule(rule, name, first) if n in self.promoted else rule for n, rule in enumerate(rules)]

    def rule(self, rule: str, name: str, first: str) -> str:
        """Return the rule of an output whose dtype is a common one."""
        if by_attr := re.fullmatch(r"\(?(.+?)\)? if (\w+) is None else \2", rule):
            return f"({self.rule(by_attr[1], name, first)}) if {by_attr[2]} is None else {by_attr[2]}"
        if rule.startswith("floating(") and self.dtype == "common":
            together = f"promote{rule.removeprefix('floating')[:-1]}, {name})"
        elif rule.startswith(("promote(", "floating(")):
            together = f"{rule[:-1]}, {name})"
        elif by_function := re.fullmatch(r"(integral_sum|real)\((\w+)\)", rule):
            together = f"{by_function[1]}(promote({by_function[2]}, {name}))"
        elif by_case := re.fullmatch(r"(\S+) if (\w+) is None else (\S+)", rule):
            return f"({self.rule(by_case[1], name, first)}) if {by_case[2]} is None else {self.rule(by_case[3], name, first)}"
        else:
            together = f"promote({rule or first}, {name})"
        return f"({rule or first}) if {name} is None else {together}"


#: Builds the relation with claims by name; None for a tensor that must be absent.
Assemble = Callable[[Mapping[str, Claim | None]], Relation]


class OptionalTensors:
    """Search for claims: what is claimed least and accepts most of the runs."""

    def __init__(self, experiments: Experiments, evidence: DomainRuns) -> None:
        self._experiments, self._evidence = experiments, evidence
        self._signature, self._calls = experiments.signature, experiments.calls
        self._domain: Domain = evidence.domain
        #: Calls that gave one, and ran.
        self.runs: list[Call] = []

    def claims(self, assemble: Assemble) -> dict[str, Claim | None]:
        """Return the claim about each optional tensor; None where no claim explains the runs, or nothing runs."""
        found: dict[str, Claim | None] = {t.name: None for t in self._signature.tensors if t.optional and not t.is_list}
        for name in found:
            runs, patterns = self._runs(name)
            self.runs += runs
            most = STRUCTURES // 2
            for claim in self._candidates(patterns) if len(runs) > most else ():
                accepted = self._accepted(assemble, {**found, name: claim}, runs)
                if accepted > most:
                    most, found[name] = accepted, claim
        return found

    def _candidates(self, patterns: list[str]) -> Iterator[Claim]:
        """Yield claims, the least first. A function of shapes is asked for patterns in another way."""
        if not self._experiments.runner.has_strides:
            yield Claim()
            return
        alike = set(re.findall(r"\[[^\]]*\]", self._domain.inputs)) <= {"[*s]", "[...]"}
        broadcast = ["[...]"] if alike else []
        for pattern in ("", *broadcast, *patterns):
            yield Claim(pattern)
            for count in range(len(self._signature.outputs), 0, -1):
                for some in combinations(range(len(self._signature.outputs)), count):
                    yield Claim(pattern, "promoted", some)
                    yield Claim(pattern, "common", some)
            yield Claim(pattern, "equal")

    def _accepted(self, assemble: Assemble, claims: Mapping[str, Claim | None], runs: list[Call]) -> int:
        """Return the number of runs that the relation accepts, 0 if it contradicts one."""
        try:
            relation = assemble(claims)
        except RelationError:
            return 0
        accepted = 0
        for values, outputs in runs:
            if refusal(relation, self._signature, values):
                continue
            if compare_run(relation, self._signature, values, outputs):
                return 0
            accepted += 1
        return accepted

    # ------------------------------------------------------------------------------------------------------------- runs

    def _runs(self, name: str) -> tuple[list[Call], list[str]]:
        """Run calls that give the tensor, in all forms; return them and the patterns that ran."""
        runs: list[Call] = []
        patterns = []
        for pattern in self._forms():
            found = self._of_pattern(name, pattern)
            if len(found) > STRUCTURES // 2:
                patterns.append(pattern)
                runs += found
                scalars = [run for run in found[3:] if not run[0][name].dim()]
                for values, _ in [*found[:3], *scalars[:1]]:
                    runs += self._of_other_dtypes(name, values)
        if runs:
            runs += self._of_other_shapes(name, runs[0][0][name].dtype)
        return runs, patterns

    def _forms(self) -> list[str]:
        """Return patterns to try: that of an input, a dimension or group of the inputs, two dimensions."""
        inputs = self._domain.relation("")
        whole = [str(t).removeprefix(t.name) for t in inputs.input_tensors if len(t.alternatives) == 1]
        dims = sorted({d for t in inputs.input_tensors for d in bound_names(t)})
        forms = [
            f"[{d}]" if f"*{d}" not in self._domain.inputs else f"[*{d}]"
            for d in dims
            if f"{d}[i]" not in self._domain.inputs
        ]
        forms = list(dict.fromkeys([*(form for form in whole if "[i]" not in form), *forms]))
        return forms + [f"[{a}, {b}]" for a in self._domain.dims for b in self._domain.dims if a != b]

    def _call(self, values: Mapping[str, Any] | None, name: str) -> list[Call]:
        """Run a call, and with it those that give every optional tensor, like this one or the first; return what ran."""
        if values is None:
            return []
        others = [t.name for t in self._signature.tensors if t.optional and not t.is_list and t.name != name]
        first = [values[t.name] for t in self._signature.required[:1]]
        alike = [value for value in (values[name], *first) if isinstance(value, torch.Tensor)]
        calls = [values, *({**values, **dict.fromkeys(others, value)} for value in alike if others)]
        # A kernel may read a bias of the wrong size beyond its end: that is no reason to give up.
        runs = [(call, self._experiments.call(call, may_crash=True)) for call in calls]
        return [(call, run.outputs) for call, run in runs if not run.error]

    def _of_pattern(self, name: str, pattern: str) -> list[Call]:
        """Run calls whose tensor has this pattern, of the first dtype with which some run."""
        wider = replace(self._domain, inputs=f"{self._domain.inputs}, {name}{pattern}")
        relation = wider.relation("")
        for dtype in (None, torch.int64, torch.int32, torch.bool):
            runs: list[Call] = []
            for structure in range(STRUCTURES):
                sizes = SIZES if structure % 3 else _SMALL
                values = self._calls.values(wider, relation, structure, self._evidence.kinds, sizes=sizes)
                if values is not None:
                    values = self._with(values, name, values[name].shape, dtype or self._first(values))
                runs += self._call(values, name)
                if structure == 3 and not runs:
                    break
            if runs:
                return runs
        return []

    def _of_other_dtypes(self, name: str, values: Mapping[str, Any]) -> list[Call]:
        """Run a call with the tensor in other dtypes, with the first input in another, and with dtypes given as attrs."""
        runs: list[Call] = []
        for attr in self._signature.attrs:
            if attr.kind == "dtype" and attr.optional:
                runs += self._call({**values, attr.name: self._calls.rng.choice(attr_dtypes(attr))}, name)
        for dtype in _DTYPES:
            runs += self._call(self._with(values, name, values[name].shape, dtype), name)
        required = [t.name for t in self._signature.required if isinstance(values[t.name], torch.Tensor)]
        for dtype in (torch.float16, torch.int64, torch.bool):
            other = dict(values)
            for one in (*required, name):
                other = self._with(other, one, values[one].shape, dtype)
                if one in (*required[:1], *required[-1:], name):
                    runs += self._call(other, name)
        return runs

    def _of_other_shapes(self, name: str, dtype: torch.dtype) -> list[Call]:
        """Run calls whose tensor is broadcast, or broadcasts the first input."""
        runs: list[Call] = []
        relation = self._domain.relation("")
        for structure in range(STRUCTURES):
            values = self._calls.values(self._domain, relation, structure, self._evidence.kinds, sizes=_SMALL)
            first = next((values[t.name] for t in self._signature.required), None) if values is not None else None
            if values is None or not isinstance(first, torch.Tensor):
                continue
            # A tensor without dimensions has less say in what dtype is common.
            shape = tuple(first.shape) if structure > 1 else (2,) * structure
            values = (
                values if structure > 1 else self._with(values, self._signature.required[0].name, shape, first.dtype)
            )
            wider = tuple(3 if size == 1 else size for size in shape)
            for other in dict.fromkeys((wider, (2, *shape), shape[1:], shape[-1:], shape[::-1], (), (*shape, 2))):
                for one in (dtype,) if shape and other else (dtype, torch.float16, torch.float64):
                    runs += self._call(self._with(values, name, other, one), name)
        return runs

    def _with(self, values: Mapping[str, Any], name: str, shape: Any, dtype: torch.dtype) -> dict[str, Any]:
        return {**values, name: self._calls.tensor(shape, dtype)}

    def _first(self, values: Mapping[str, Any]) -> torch.dtype:
        """Return the dtype of the first required tensor of a call."""
        for tensor in self._signature.required:
            value = values[tensor.name]
            value = value[0] if isinstance(value, list) and value else value
            if isinstance(value, torch.Tensor):
                return value.dtype
        return torch.float32
