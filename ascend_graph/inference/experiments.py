"""Runs of the kernel, and the evidence that they give for one domain."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ascend_graph.inference.calls import ROUND, SIZES, CallSampler
from ascend_graph.inference.conditions import learn
from ascend_graph.inference.domains import Domain, OperatorSignature, safe_name
from ascend_graph.inference.observed import shapes_of, spec_of
from ascend_graph.inference.running import Caller, KernelError, Returned, Run
from ascend_graph.inference.solver import Observation
from ascend_graph.shapes import Relation

#: Number of input structures (ranks, lengths of lists) that every domain must run with.
STRUCTURES = 8
#: Number of runs that a relation must explain before the check on fresh ones, and number of fresh runs.
RUNS, FRESH_RUNS = 24, 12


@dataclass(slots=True)
class DomainRuns:
    """Successful runs of one domain with one choice of tensor kinds."""

    domain: Domain
    kinds: Mapping[str, str]
    observations: list[Observation] = field(default_factory=list)
    values: list[dict[str, Any]] = field(default_factory=list)
    outputs: list[tuple[Any, ...]] = field(default_factory=list)
    #: Inputs that the kernel refused.
    refused: list[Observation] = field(default_factory=list)
    failed: str = ""


class Experiments:
    """Runs of one kernel."""

    def __init__(
        self, signature: OperatorSignature, runner: Caller, rng: random.Random, calls: CallSampler | None = None
    ) -> None:
        self.signature, self.runner = signature, runner
        self.calls = CallSampler(signature, rng) if calls is None else calls
        #: Every run that succeeded, in any domain: a relation must not differ from any of them.
        self.seen: list[tuple[dict[str, Any], tuple[Any, ...]]] = []
        self.known: set[str] = set()
        #: Number of runs that returned an input, number of runs that did not, and the message about the alias.
        self.aliased, self.clean, self.alias = 0, 0, ""

    def forget(self) -> None:
        """Drop all runs, so that tensors of other kinds can follow."""
        self.seen.clear()
        self.known.clear()

    def call(self, values: Mapping[str, Any], *, may_crash: bool = False) -> Run:
        """Run the kernel and record its outputs if it succeeds."""
        run = self.runner.call({name: values[safe_name(name)] for name in self.runner.names}, may_crash=may_crash)
        if not run.error:
            key = repr([spec_of(value) for value in values.values()])
            if key not in self.known:
                self.known.add(key)
                self.seen.append((dict(values), run.outputs))
            self.check_aliases(run)
        return run

    def check_aliases(self, run: Run) -> None:
        """Note an output that is an undeclared alias of an input.

        Raises:
            KernelError: At least 60 runs returned an input, and every run did.
        """
        for number, output in enumerate(run.outputs):
            for returned in output if isinstance(output, list) else [output]:
                if isinstance(returned, Returned) and returned.alias:
                    self.aliased += 1
                    self.alias = (
                        f"output {number} of {self.signature.name} is an alias of its input {returned.alias}, which the schema "
                        f"does not declare: return a new tensor, or write Tensor(a) in the schema"
                    )
                    if self.aliased >= 60 and not self.clean:
                        raise KernelError(self.alias)
                    return
        self.clean += 1

    def probe(self, kinds: Mapping[str, str], shapes: Mapping[str, tuple[int, ...]], attrs: Mapping[str, Any]) -> bool:
        """Return whether the kernel takes tensors of these shapes."""
        return not self.call(
            self.calls.arguments(shapes, attrs, {k: self.calls.kind_dtypes(k, kind)[0] for k, kind in kinds.items()})
        ).error

    def gather(self, domain: Domain, kinds: Mapping[str, str]) -> DomainRuns:
        """Run the domain's structures, and add learned conditions to the domain if many runs are refused."""
        for _ in range(3):
            evidence = DomainRuns(domain, kinds)
            relation = domain.relation("")
            never = None
            for structure in range(STRUCTURES):
                wanted, attempts = (3, 40) if structure else (1, 16)
                if not self.some(evidence, relation, structure, wanted, attempts=attempts) and not self.some(
                    evidence, relation, structure, wanted, attempts=24, sizes=ROUND
                ):
                    never = structure
                    # A group may need some dimensions: what is pooled has two or three.
                    if not structure and not domain.where and not self.any_runs(evidence, relation):
                        break
            # Every flag and every axis that may be absent doubles the cases to be told apart.
            cases = sum(a.kind == "bool" or bool(domain.roles.get(a.name)) for a in self.signature.attrs)
            if evidence.observations:
                for structure in range(STRUCTURES * 3 * (1 + cases)):
                    if len(evidence.observations) >= RUNS * (2 + 2 * cases):
                        break
                    self.some(evidence, relation, structure, 2, attempts=4)
            if any(self.signature.outputs):  # how many parts there are of nothing
                for structure in range(STRUCTURES):
                    self.some(evidence, relation, structure, 1, attempts=4, sizes=(0, 2, 3))
            if len(evidence.refused) > len(evidence.observations) // 4:
                conditions = self.conditions(evidence)
                if conditions:
                    domain = replace(domain, where=(*domain.where, *conditions))
                    continue
            break
        if never is not None:
            evidence.failed = f"structure {never} never runs: {self.runner.last_error}"
        elif len(evidence.observations) < RUNS // 2:
            evidence.failed = "too few runs"
        return evidence

    def any_runs(self, evidence: DomainRuns, relation: Relation) -> bool:
        """Return whether a structure after the first runs; without one the domain is not looked at any further."""
        return any(self.some(evidence, relation, n, 1, attempts=30 if n == 1 else 4) > 0 for n in range(1, STRUCTURES))

    def some(
        self,
        evidence: DomainRuns,
        relation: Relation,
        structure: int,
        wanted: int,
        *,
        attempts: int,
        sizes: Sequence[int] = SIZES,
    ) -> int:
        """Record up to ``wanted`` successful runs of one structure.

        Returns:
            The number of successful runs, or -1 if the domain has no such structure.
        """
        done = missed = 0
        for _ in range(attempts):
            if done >= wanted:
                break
            values = self.calls.values(evidence.domain, relation, structure, evidence.kinds, sizes=sizes)
            if values is None:
                missed += 1
                if missed > 2 and not done:
                    return -1
                continue
            run = self.call(values)
            if not run.error:
                self.record(evidence, values, run.outputs)
                done += 1
            else:
                evidence.refused.append(self.observation(values, ()))
        return done

    def conditions(self, evidence: DomainRuns) -> list[str]:
        """Return conditions that separate runs from refusals, without those that a counterexample breaks."""
        found = learn(evidence.domain, self.signature, evidence.observations, evidence.refused)
        kept = []
        for number, condition in enumerate(found):
            others = (*found[:number], *found[number + 1 :])
            broken = replace(evidence.domain, where=(*evidence.domain.where, *others, f"not ({condition})"))
            if not self.breaks(broken, evidence.kinds):
                kept.append(condition)
        return kept

    def breaks(self, broken: Domain, kinds: Mapping[str, str]) -> bool:
        """Return whether a call runs that a condition forbids."""
        relation, missed = broken.relation(""), 0
        for structure in range(STRUCTURES * 3):
            values = self.calls.values(broken, relation, structure, kinds)
            if values is not None and not self.call(values).error:
                return True
            missed += values is None
            if missed == STRUCTURES:  # hardly any call can break it
                break
        return False

    def record(self, evidence: DomainRuns, values: dict[str, Any], outputs: tuple[Any, ...]) -> None:
        """Add a run to the evidence."""
        evidence.values.append(values)
        evidence.outputs.append(outputs)
        evidence.observations.append(self.observation(values, outputs))

    def observation(self, values: Mapping[str, Any], outputs: tuple[Any, ...]) -> Observation:
        """Describe a call as a relation sees it: input shapes, attrs, and output shapes."""
        shapes = {t.name: shapes_of(values[t.name]) for t in self.signature.tensors}
        attrs = {a.name: values[a.name] for a in self.signature.attrs}
        return Observation(shapes, attrs, tuple(shapes_of(o) for o in outputs))
