"""Conclusions from the evidence of one domain: the relation that no run contradicts, or the reason for refusing it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ascend_graph.dispatch.meta_dtypes import TORCH
from ascend_graph.inference.attr_draws import USUAL_INTEGERS
from ascend_graph.inference.calls import KINDS, SIZES
from ascend_graph.inference.conclusions.dtype_rules import Call
from ascend_graph.inference.conclusions.dtype_runs import DtypeRuns
from ascend_graph.inference.conclusions.folding import folded, with_one_dtype
from ascend_graph.inference.conclusions.optional_tensors import Claim, OptionalTensors
from ascend_graph.inference.conditions import bounds, restrictions
from ascend_graph.inference.domains import Domain, neighbors
from ascend_graph.inference.experiments import FRESH_RUNS, STRUCTURES, DomainRuns, Experiments
from ascend_graph.inference.observed import (
    compare_run,
    contiguous,
    dtypes_of,
    flat,
    is_like,
    refusal,
    same_strides,
    shapes_of,
    valid,
    with_like,
)
from ascend_graph.inference.results import DomainTrial, InferenceError, Inferred
from ascend_graph.inference.running import Returned
from ascend_graph.inference.solver import Observation, ShapeAlternatives, Solver, selectors
from ascend_graph.shapes import Relation, parse_relation

#: Keywords of a condition, which are not names.
_WORDS = {"is", "not", "or", "and", "None", "in"}


class Conclusions:
    """Relations that explain the experiments, and the outcome of every domain tried."""

    def __init__(self, experiments: Experiments) -> None:
        self.experiments, self.signature, self.calls = experiments, experiments.signature, experiments.calls
        self.trials: list[DomainTrial] = []
        #: Claims about optional tensors; None for one that must be absent.
        self.claims: Mapping[str, Claim | None] = {}
        self.dtype_runs = DtypeRuns(experiments)
        #: Lists whose tensors must have one dtype.
        self.uniform: frozenset[str] = frozenset()
        #: Dtype rules of a function, which hold for every domain.
        self.rules: list[str] | None = None

    def conclude(self, evidence: DomainRuns) -> Inferred | None:
        """Return the relation that explains the evidence, checked on fresh runs, or ``None``."""
        domain, observations = evidence.domain, evidence.observations
        if any(o is None for seen in observations for o in seen.outputs):
            self.note(evidence, "an output is sometimes absent")
            return None
        solver = Solver(domain, self.signature)
        splits = selectors(self.signature, observations, domain)
        explained: list[list[ShapeAlternatives]] = []
        for number in range(len(self.signature.outputs)):
            found = solver.explain(number, observations, splits)
            if not found:
                self.note(evidence, f"no candidate explains output {number}")
                return None
            explained.append(found)
        # What differs anywhere on the domain is two explanations; what never differs is one, and the simplest is taken.
        needless = [a.name for a in self.signature.attrs if not a.has_default and a.kind in ("int", "int[]", "bool")]
        limits = [limit for limit in self.limits(evidence) if not limit.startswith("len(")]
        if any(name in limit for limit in limits for name in needless):
            self.note(evidence, f"only runs with {', '.join(limits)}")
            return None
        rivals = self.rivals(explained, domain, evidence)
        if rivals:
            self.note(evidence, f"{len(rivals)} candidates survive: " + " | ".join(rivals))
            return None
        if self.rules is None or self.experiments.runner.has_strides:
            self.rules = self.dtype_runs.rules(evidence)
        dtypes = self.rules
        if dtypes is None:
            self.note(evidence, "no dtype rule explains the outputs")
            if not self.experiments.runner.has_strides:
                raise InferenceError(
                    f"{self.signature.name}: no dtype rule explains the outputs, whose shapes may be explained by "
                    f"{self.assemble(domain, [e[0] for e in explained], [''] * len(explained), observations)}"
                )
            return None
        self.uniform = self.dtype_runs.uniform_lists(evidence, dtypes)
        shapes = [e[0] for e in explained]
        self.try_integers(shapes, evidence)
        optional = OptionalTensors(self.experiments, evidence)
        self.claims = optional.claims(lambda claims: self.assemble(domain, shapes, dtypes, observations, claims))
        relation = self.assemble(domain, shapes, dtypes, observations, self.claims)
        failure, empty = self.fresh(relation, evidence)
        if not failure:
            self.look_around(evidence)
            failure, empty = self.contradiction(relation)
        elements = tuple(f"numel({t.name}) > 0" for t in self.signature.required if not t.is_list)
        if failure and empty and elements and domain.where[-len(elements) :] != elements:
            evidence.domain = replace(domain, where=(*domain.where, *elements))
            return self.conclude(evidence)
        if failure:
            self.note(evidence, failure)
            return None
        notes: list[str] = []
        if self.experiments.runner.has_strides:
            relation, notes = self.with_strides(relation, evidence, optional.runs)
        relation = folded(relation)
        self.note(evidence, f"explained: {relation}")
        return self.found(relation, domain, notes)

    def limits(self, evidence: DomainRuns) -> list[str]:
        """Return the restrictions that another domain might not need: those on int, int[] and bool attrs."""
        free = [a for a in self.signature.attrs if a.kind in ("int", "int[]", "bool")]
        return restrictions(replace(self.signature, attrs=tuple(free)), evidence.observations, evidence.domain)

    def note(self, evidence: DomainRuns, outcome: str) -> None:
        """Record the outcome of a domain."""
        self.trials.append(DomainTrial(evidence.domain.inputs, len(evidence.observations), outcome))

    def rivals(self, explained: Sequence[list[ShapeAlternatives]], domain: Domain, evidence: DomainRuns) -> list[str]:
        """Keep one explanation per output, dropping those that fresh runs contradict.

        Returns:
            A note if fresh runs contradict all explanations of an output, otherwise nothing.
        """
        relation = domain.relation("")
        for number, found in enumerate(explained):
            if len(found) < 2:
                continue
            texts = [e.text("y", "") for e in found]
            solver = Solver(domain, self.signature)
            for structure in range(STRUCTURES * 2):
                values = self.calls.values(domain, relation, structure, evidence.kinds)
                if values is None:
                    continue
                seen = self.experiments.observation(values, ())
                results = [solver.value(text, seen) for text in texts]
                if all(r == results[0] for r in results):
                    continue
                run = self.experiments.call(values)
                if run.error:
                    continue
                truth = shapes_of(run.outputs[number])
                texts = [t for t, r in zip(texts, results, strict=True) if r == truth]
            kept = [e for e in found if e.text("y", "") in texts]
            if not kept:
                return ["none on fresh inputs"]
            found[:] = kept[:1]
        return []

    def assemble(
        self,
        domain: Domain,
        explained: Sequence[ShapeAlternatives],
        dtypes: Sequence[str],
        observations: Sequence[Observation],
        claims: Mapping[str, Claim | None] = MappingProxyType({}),
    ) -> Relation:
        """Build the relation, with the restrictions to the values seen, and the claims about optional tensors."""
        first = next((t.name for t in self.signature.required), None)
        said = {name: claim for name, claim in claims.items() if claim is not None}
        for name, claim in said.items():
            dtypes = claim.rules(dtypes, name, first or "")
        outputs = []
        for number, (explanation, dtype) in enumerate(zip(explained, dtypes, strict=True)):
            outputs.append(
                _output(f"out{number}", explanation, "" if dtype == first else dtype, self.signature.outputs[number])
            )
        demands = [*domain.where]
        if only := self.dtype_runs.only:
            allowed = ", ".join(str(d).removeprefix("torch.") for d in KINDS[only])
            demands += [f"dtype({t.name}) in ({allowed})" for t in self.signature.required if not t.is_list]
        demands += restrictions(self.signature, observations, domain)
        for bound in bounds(self.signature, observations, domain):
            name = bound.partition(" ")[0]
            if not any(re.search(rf"\b{re.escape(name)} (> 0|>= [0-9])", said) for said in domain.where):
                demands.append(bound)
        for attr in self.signature.attrs:
            # A dtype attr that was only absent must stay so; one that decides the dtype is in the rule.
            if attr.kind == "dtype" and not any(attr.name in dtype for dtype in dtypes):
                if attr.optional:
                    demands.append(f"{attr.name} is None")
                elif self.dtype_runs.at_default and (default := TORCH.from_attr(attr.default)) is not None:
                    demands.append(f"{attr.name} == {TORCH.to_name(default)}")
        absent = [t.name for t in self.signature.tensors if t.optional and t.name not in said]
        demands += [f"{name} is None" for name in absent]
        demands += filter(None, (claim.demand(name, first or "") for name, claim in said.items()))
        for attr in self.signature.attrs:
            # An integer that selects alternatives has meant nothing yet where it had no value that was tried.
            if attr.kind == "int" and _selects(attr.name, explained):
                tried = (o.attrs for o in observations), (values for values, _ in self.experiments.seen)
                seen = sorted({a[attr.name] for a in itertools.chain(*tried) if a[attr.name] is not None})
                demands.append(f"{attr.name} in ({', '.join(map(str, seen))})")
        patterns = [f"{name}{claim.pattern}" for name, claim in said.items() if claim.pattern or claim.dtype != "any"]
        inputs = ", ".join(p for p in (domain.inputs, *patterns, *absent) if p)
        if any(claim.pattern == "[...]" for claim in said.values()):
            inputs, outputs = inputs.replace("[*s]", "[...]"), [_broadcast(output, first or "") for output in outputs]
        text = f"{inputs} -> {', '.join(outputs)}" + (f" where {', '.join(demands)}" if demands else "")
        return with_one_dtype(parse_relation(text), self.uniform)

    def try_integers(self, explained: Sequence[ShapeAlternatives], evidence: DomainRuns) -> None:
        """Run calls with all usual values of the integers that select alternatives."""
        for attr in self.signature.attrs:
            if attr.kind == "int" and _selects(attr.name, explained):
                for value in sorted(USUAL_INTEGERS):
                    self.experiments.call({**evidence.values[value % len(evidence.values)], attr.name: value})

    def fresh(self, relation: Relation, evidence: DomainRuns) -> tuple[str, bool]:
        """Compare a relation with fresh runs of other shapes and dtypes.

        Returns:
            The first difference, and whether a tensor of that call had no elements.
        """
        inputs = evidence.domain.relation("")
        compared = 0
        # Distinct sizes tell dimensions apart; equal ones make valid what distinct ones do not, such as another axis.
        # Sizes 1 and 0 are what operators treat apart.
        pools = [SIZES] * (FRESH_RUNS * 2) + [(2, 3), (2,), (3,), (1, 2), (1, 3, 2), (1,), (0, 2)] * (FRESH_RUNS // 2)
        for structure, sizes in enumerate(pools, 100):
            values = self.calls.values(
                evidence.domain, inputs, structure, evidence.kinds, mixed=0 not in sizes, sizes=sizes
            )
            if values is None:
                continue
            run = self.experiments.call(values)
            if run.error:
                continue
            difference = compare_run(relation, self.signature, values, run.outputs)
            if difference:
                return difference, self.is_empty(values)
            compared += 1
        return "" if compared >= 3 else f"only {compared} fresh inputs ran", False

    def is_empty(self, values: Mapping[str, Any]) -> bool:
        """Return whether a tensor of a call has no elements."""
        shapes = (shapes_of(values[t.name]) for t in self.signature.tensors if values[t.name] is not None)
        return any(0 in shape for shape in flat(shapes))

    def look_around(self, evidence: DomainRuns) -> None:
        """Run neighbors of earlier calls, with other sizes, ranks and attrs, to expose a narrow or wrong relation."""
        given = evidence.values[:: max(len(evidence.values) // 6, 1)][:6]
        for values in given:
            dtypes = {t.name: dtypes_of(values[t.name]) for t in self.signature.tensors if values[t.name] is not None}
            dtypes = {n: d[0] if isinstance(d, list) else d for n, d in dtypes.items()}
            shapes = {t.name: shapes_of(values[t.name]) for t in self.signature.tensors}
            attrs = {a.name: values[a.name] for a in self.signature.attrs}
            for other_shapes, other_attrs in neighbors(self.signature, shapes, attrs, self.calls.rng):
                self.experiments.call(self.calls.arguments(other_shapes, other_attrs, dtypes), may_crash=True)

    def contradiction(self, relation: Relation) -> tuple[str, bool]:
        """Find a run of any domain that the relation accepts but contradicts.

        Returns:
            The difference, and whether a tensor of that call had no elements.
        """
        for values, outputs in self.experiments.seen:
            difference = compare_run(relation, self.signature, values, outputs, may_refuse=True)
            if difference:
                return difference, self.is_empty(values)
        return "", False

    def found(self, relation: Relation, domain: Domain, notes: Sequence[str] = ()) -> Inferred:
        """Return the relation with its evidence, and an example of a run that it refuses."""
        narrower, narrow, inputs = "", False, self.about_shapes(domain).relation("")
        structures: set[str] = set()
        for values, _ in self.experiments.seen:
            refused = refusal(relation, self.signature, values)
            if not refused:
                continue
            shapes = {t.name: shapes_of(values[t.name]) for t in self.signature.tensors if values[t.name] is not None}
            # Tensors without dimensions or elements, and what attrs forbid, are edges; other shapes are a part of the operator.
            plain = all(shapes.values()) and all(0 not in shape for shape in flat(shapes.values()))
            inside = plain and not valid(inputs, shapes, values)
            if inside:
                structures.add(str([len(shape) for shape in flat(shapes.values())]))
            if not narrower or (inside and not narrow):
                narrower = f"narrower than the kernel, which also runs on {self.shown(shapes, values)}: {refused}"
                narrow = inside
        alias = f"for some inputs {self.experiments.alias}"
        if self.experiments.alias and alias not in notes:
            notes = (*notes, alias)
        runs, trials = self.experiments.runner.runs, tuple(self.trials)
        return Inferred(relation, runs, trials, narrower, narrow, notes=tuple(notes), refused=len(structures))

    def about_shapes(self, domain: Domain) -> Domain:
        """Return the domain without its conditions on attrs alone."""
        attrs = {a.name for a in self.signature.attrs}
        return replace(
            domain, where=tuple(w for w in domain.where if not set(re.findall(r"[^\W\d]\w*", w)) <= attrs | _WORDS)
        )

    def shown(self, shapes: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the shapes of a call, and the attrs that differ from their defaults."""
        return {**shapes, **{a.name: values[a.name] for a in self.signature.attrs if values[a.name] != a.default}}

    def with_strides(
        self, relation: Relation, evidence: DomainRuns, optional: Sequence[Call]
    ) -> tuple[Relation, list[str]]:
        """Return the relation with ``like`` for outputs that have an input's strides, and notes.

        A note names an output with neither an input's strides nor contiguous ones in every run.
        """
        inputs = evidence.domain.relation("")
        runs: list[Call] = list(zip(evidence.values, evidence.outputs, strict=True))
        runs += [run for run in optional if not refusal(relation, self.signature, run[0])]
        turned = 0
        for structure in range(200, 200 + FRESH_RUNS * 12):
            if turned >= FRESH_RUNS * 2:
                break
            values = self.calls.values(evidence.domain, inputs, structure, evidence.kinds)
            if values is None:
                continue
            values = {name: self.calls.permuted(value) for name, value in values.items()}
            run = self.experiments.call(values)
            if not run.error:
                runs.append((values, run.outputs))
                turned += 1
        notes: list[str] = []
        for number, name in enumerate(relation.outputs):
            found = [(v, o[number]) for v, o in runs if isinstance(o[number], Returned)]
            odd = next((r for _, r in found if not same_strides(r, contiguous(r.shape))), None)
            if odd is None:
                continue
            for tensor in self.signature.required:
                if not tensor.is_list and all(is_like(r, v[tensor.name]) for v, r in found):
                    relation = with_like(relation, number, tensor.name)
                    break
            else:
                notes.append(f"the strides of {name} are not always contiguous: {odd.strides} for {odd.shape}")
        return relation, notes


def _selects(attr: str, explained: Sequence[ShapeAlternatives]) -> bool:
    """Return whether values of an integer attr select alternatives."""
    return any(c.startswith((f"{attr} ==", f"{attr} in")) for e in explained for c in e.conditions)


def _broadcast(output: str, first: str) -> str:
    """Return an output of the inputs' shape as one of their broadcast shape."""
    name, _, rest = output.partition(f" like {first}")
    return f"{name}[...]{rest}" if name != output else output.replace("[*s]", "[...]")


def _output(name: str, explanation: ShapeAlternatives, dtype: str, is_list: bool) -> str:
    if not is_list:
        return explanation.text(name, dtype)
    return f"{name}{explanation.shapes[0]}{f': {dtype}' if dtype else ''}"
