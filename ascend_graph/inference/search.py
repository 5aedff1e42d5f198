"""Search for a relation: the domains tried, their order, and the relation taken."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ascend_graph.inference.calls import CallSampler
from ascend_graph.inference.conclusions.conclusion import Conclusions
from ascend_graph.inference.conclusions.dtype_rules import dtype_holds
from ascend_graph.inference.domains import Domain, OperatorSignature, constraints, domains, restored
from ascend_graph.inference.experiments import DomainRuns, Experiments
from ascend_graph.inference.functions.branches import joined as joined_relation
from ascend_graph.inference.observed import valid
from ascend_graph.inference.results import InferenceError, Inferred
from ascend_graph.inference.running import Caller
from ascend_graph.inference.solver import Solver, selectors
from ascend_graph.inference.survey import PatternSurvey
from ascend_graph.inference.templates import dtype_candidates
from ascend_graph.shapes.errors import RelationError


class Search:
    """Search for one operator: :meth:`run` with random inputs, :meth:`from_samples` with given ones."""

    def __init__(
        self, signature: OperatorSignature, runner: Caller, rng: random.Random, calls: CallSampler | None = None
    ) -> None:
        self.signature = signature
        self.experiments = Experiments(signature, runner, rng, calls)
        self.calls = self.experiments.calls
        self.conclusions = Conclusions(self.experiments)

    def run(self, among: Sequence[Domain] = ()) -> Inferred:
        """Try the domains, wider ones first, with every choice of tensor kinds; or some alone, by the calls that run."""
        for kinds in self.calls.kinds():
            candidates: list[tuple[int, Domain, Inferred]] = []
            ran = settled = False
            self.experiments.forget()
            for domain in self.by_answers(among, kinds) if among else self.domains(kinds):
                # Where a survey found what inputs look like, the family adds what speaks of attrs, broadcasts or demands nothing.
                if settled and not (
                    domain.surveyed or domain.roles or "..." in domain.inputs or not constraints(domain.inputs)
                ):
                    continue
                evidence = self.experiments.gather(domain, kinds)
                if evidence.failed:
                    continue
                ran = True
                # A relation that claims less than it could is kept while a better one is looked for.
                limits = len(self.conclusions.limits(evidence))
                found = self.conclusions.conclude(evidence)
                if found is not None and among:
                    return found
                if found is not None:
                    candidates.append((limits, evidence.domain, found))
                    joined = self.by_rank(candidates)
                    if joined is not None and not joined.refused:
                        return joined
                    # One tensor has few patterns; those for other numbers of dimensions are tried, too.
                    some_ranks = found.narrow and len(self.signature.required) == 1
                    settled |= not some_ranks and not any("rank(" in c for c in evidence.domain.where)
                    if not limits and not found.refused:
                        return found
            if candidates:
                return self.by_rank(candidates) or self.widest(candidates)
            if ran:  # what holds for other kinds only would be wrong for these
                break
        raise self.refusal()

    def by_answers(self, among: Sequence[Domain], kinds: Mapping[str, str]) -> list[Domain]:
        """Return domains, those of which most random calls run first."""

        def answers(domain: Domain) -> int:
            drawn = (self.calls.values(domain, domain.relation(""), None, kinds) for _ in range(12))
            return sum(values is not None and not self.experiments.call(values).error for values in drawn)

        return sorted(among, key=answers, reverse=True)

    def widest(self, candidates: Sequence[tuple[int, Domain, Inferred]]) -> Inferred:
        """Return the relation that refuses the fewest runs; among equals, the one with the most dimensions."""
        judged = [
            (limits, domain, self.conclusions.found(f.relation, domain, f.notes)) for limits, domain, f in candidates
        ]

        def grade(one: tuple[int, Domain, Inferred]) -> tuple[int, int, int, int]:
            limits, domain, found = one
            # A pattern that holds up to a number of dimensions, and refuses other inputs, is one by chance.
            ranks = sum("rank(" in condition for condition in domain.where)
            return limits, ranks, found.refused, -len(domain.dims)

        return min(judged, key=grade)[2]

    def by_rank(self, candidates: Sequence[tuple[int, Domain, Inferred]]) -> Inferred | None:
        """Return one relation for the only tensor's numbers of dimensions of which a candidate speaks each, if that is wider."""
        if len(self.signature.required) != 1 or self.signature.required[0].is_list:
            return None
        (tensor,) = self.signature.required
        ranks: dict[tuple[int], Inferred] = {}
        for limits, domain, found in candidates:
            if not limits and not domain.roles and not set("*.") & set(domain.inputs):
                ranks.setdefault((domain.inputs.count(",") + 1,), found)
        if len(ranks) < 2:
            return None
        try:
            relation = joined_relation(
                (f"rank({tensor.name})",), {rank: found.relation for rank, found in sorted(ranks.items())}
            )
        except RelationError:
            return None
        best = self.widest(candidates)
        domain = Domain(", ".join(map(str, relation.input_tensors)))
        together = self.conclusions.found(relation, domain, best.notes)
        if together.refused >= best.refused or self.conclusions.contradiction(relation)[0]:
            return None
        return together

    def domains(self, kinds: Mapping[str, str]) -> Iterator[Domain]:
        """Yield the domains to try: first those that a survey found, then the family that every operator gets."""
        family = {domain.form: domain for domain in reversed(domains(self.signature))}
        tried = set()
        if PatternSurvey.fits(self.signature):
            survey = PatternSurvey(self.signature, partial(self.experiments.probe, kinds), self.calls.rng)
            for domain in survey.domains():
                if domain.form not in tried and self.calls.readable(domain):
                    tried.add(domain.form)
                    yield replace(family.get(domain.form, domain), surveyed=True)  # the family's names read better
            if not survey.seeds and len(list(itertools.islice(self.calls.kinds(), 2))) > 1:  # tensors of other kinds
                return
        for domain in domains(self.signature, shapes_alone=not self.experiments.runner.has_strides):
            if domain.form not in tried:
                yield domain

    def from_samples(self, samples: Sequence[dict[str, Any]]) -> Inferred:
        """Search with given inputs: try the domains that fit them all, in the same order."""
        runs = []
        for values in samples:
            run = self.experiments.call(values)
            if run.error:
                raise InferenceError(
                    f"{self.signature.name} raised for a sample: {run.error}. Give samples= that it takes"
                )
            runs.append((values, run.outputs))
        if len({repr(self.experiments.observation(v, o)) for v, o in runs}) < 3:
            raise InferenceError(f"{len(runs)} sample(s) say too little: give at least three of different shapes")
        for domain in domains(self.signature):
            evidence = DomainRuns(domain, {t.name: "float" for t in self.signature.required})
            relation = domain.relation("")
            for values, outputs in runs:
                seen = self.experiments.observation(values, outputs)
                if not valid(relation, seen.shapes, seen.attrs):
                    break
                self.experiments.record(evidence, values, outputs)
            else:
                found = self.conclude_samples(evidence)
                if found is not None:
                    return found
        raise self.refusal()

    def conclude_samples(self, evidence: DomainRuns) -> Inferred | None:
        solver = Solver(evidence.domain, self.signature)
        observations = evidence.observations
        explained = []
        for number in range(len(self.signature.outputs)):
            found = solver.explain(number, observations, selectors(self.signature, observations, evidence.domain))
            if len(found) != 1:
                shown = " | ".join(e.text("", "") for e in found)
                self.conclusions.note(
                    evidence, f"output {number}: " + (f"more than one candidate: {shown}" if found else "no candidate")
                )
                return None
            explained.append(found[0])
        runs = list(zip(evidence.values, evidence.outputs, strict=True))
        rules = []
        for number in range(len(self.signature.outputs)):
            rule = next(
                (c for c in dtype_candidates(self.signature) if dtype_holds(self.signature, c, number, runs)), None
            )
            if rule is None:
                self.conclusions.note(evidence, f"no dtype rule explains output {number}")
                return None
            rules.append(rule)
        relation = self.conclusions.assemble(evidence.domain, explained, rules, observations)
        return self.conclusions.found(relation, evidence.domain)

    def refusal(self) -> InferenceError:
        rows = [f"  {t.domain:48} {t.runs:4} runs  {t.outcome}" for t in self.conclusions.trials if t.runs] or [
            "  no input ran"
        ]
        last = (
            f"\n  the last error of the kernel: {self.experiments.runner.last_error}"
            if self.experiments.runner.last_error
            else ""
        )
        inputs = ", ".join(f"{t.name}[…]" for t in self.signature.required)
        outputs = ", ".join(f"out{n}[…]" for n in range(len(self.signature.outputs)))
        names = self.experiments.runner.names
        return InferenceError(
            f"no shape relation was found for {self.signature.name} by running it; tried:\n"
            + restored("\n".join(rows), names)
            + last
            + f'\nwrite shape="{restored(inputs, names)} -> {outputs}" or, if random inputs are invalid, give samples='
        )
