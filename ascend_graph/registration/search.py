"""The search for a relation: which inputs to run, which explanation of the outputs to believe, and why none."""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any

import torch

from ascend_graph.dispatch.meta import TORCH
from ascend_graph.errors import AscendGraphError
from ascend_graph.registration.running import KernelError, Returned, Run, Runner
from ascend_graph.registration.survey import Survey
from ascend_graph.shapes import Relation, RelationError, ShapeError, parse_relation
from ascend_graph.shapes.conditions import learn
from ascend_graph.shapes.domains import (
    Domain,
    Signature,
    attr_values,
    domains,
    neighbours,
    plain_values,
    restored,
    safe_name,
)
from ascend_graph.shapes.samples import SampleError, sample
from ascend_graph.shapes.solver import Explanation, Observation, Solver, bounds, restrictions, selectors
from ascend_graph.shapes.syntax import Like, Name, bound_names
from ascend_graph.shapes.templates import dtype_candidates

#: How many structures (ranks, lengths of lists) of inputs every domain must run with.
STRUCTURES = 8
#: Runs a relation must explain before it is checked on fresh ones, and how many fresh ones there are.
RUNS, FRESH_RUNS = 24, 12

_SIZES = (2, 3, 4, 5, 6, 7, 9, 11, 13)
#: Sizes that are often multiples of each other, or alike.
_ROUND = (1, 2, 2, 4, 4, 4, 8, 8, 12, 3, 6, 16)
_ATTR_DTYPES = (torch.float32, torch.float64, torch.float16, torch.int64, torch.int32)
_KINDS: Mapping[str, Sequence[torch.dtype]] = {
    "float": (torch.float32, torch.float64, torch.bfloat16, torch.float16),
    "int": (torch.int64, torch.int32, torch.uint8),
    "bool": (torch.bool,),
    "complex": (torch.complex64, torch.complex128),
    # For kernels that take no others.
    "half": (torch.float16, torch.bfloat16),
    "int32": (torch.int32,),
    "byte": (torch.uint8, torch.int8),
}


class InferenceError(AscendGraphError):
    """No relation was found by running; the message has the table of what was tried and the line to write instead."""


class NarrowRelationWarning(UserWarning):
    """A relation found by running refuses shapes that the kernel takes; the text has an example of them."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One row of the table: a domain, how many runs it had, and what came of it."""

    domain: str
    runs: int
    outcome: str


@dataclass(frozen=True, slots=True)
class Inferred:
    """A relation found by running, and the evidence for it."""

    relation: Relation
    runs: int
    trials: tuple[Trial, ...] = ()
    #: An input that the kernel runs on and the relation refuses, if one was met.
    narrower: str = ""
    #: Whether that is so for shapes of tensors with dimensions, whatever the attrs are.
    narrow: bool = False
    #: Outputs whose strides the relation does not say, or that are an input at times.
    strides: tuple[str, ...] = ()
    #: How many numbers of dimensions were met with which this is so.
    refused: int = 0

    def __str__(self) -> str:
        notes = [note for note in (self.narrower, *self.strides) if note]
        return "\n".join([f'shape="{self.relation}"', *(f"# {note}" for note in notes)])


@dataclass(slots=True)
class _Evidence:
    """The successful runs of one domain with one choice of tensor kinds."""

    domain: Domain
    kinds: Mapping[str, str]
    observations: list[Observation] = field(default_factory=list)
    values: list[dict[str, Any]] = field(default_factory=list)
    outputs: list[tuple[Any, ...]] = field(default_factory=list)
    #: Inputs that the kernel refused.
    refused: list[Observation] = field(default_factory=list)
    failed: str = ""


class Search:
    """One search; :meth:`run` with random inputs, :meth:`from_samples` with inputs given."""

    def __init__(self, signature: Signature, runner: Runner, rng: random.Random) -> None:
        self.signature, self.runner, self.rng = signature, runner, rng
        self.trials: list[Trial] = []
        #: Every run that succeeded, of whatever domain: a relation must not differ from any.
        self.seen: list[tuple[dict[str, Any], tuple[Any, ...]]] = []
        self.known: set[str] = set()
        #: Optional tensors that were tried and change neither shapes nor dtypes.
        self.harmless: set[str] = set()
        #: How many runs returned an input, and what is wrong with it.
        self.aliased, self.clean, self.alias = 0, 0, ""
        #: Whether the dtype rules hold for floating tensors only.
        self.only_floats = False

    # ---------------------------------------------------------------------------------------------------------- driver

    def run(self) -> Inferred:
        """Try the domains, wider ones first, with every choice of tensor kinds."""
        for kinds in self.kinds():
            candidates: list[tuple[int, Domain, Inferred]] = []
            ran = settled = False
            self.seen.clear()
            self.known.clear()
            for domain in self.domains(kinds):
                # Where a survey found what inputs look like, the family adds no more than what speaks of attrs, and what broadcasts.
                if settled and not (domain.surveyed or domain.roles or "..." in domain.inputs):
                    continue
                evidence = self.gather(domain, kinds)
                if evidence.failed:
                    continue
                ran = True
                # A relation that claims less than it could is kept while a better one is looked for.
                limits = len(self.limits(evidence))
                found = self.conclude(evidence)
                if found is not None:
                    candidates.append((limits, evidence.domain, found))
                    settled |= not any("rank(" in condition for condition in evidence.domain.where)
                    if not limits and not found.refused:
                        return found
            if candidates:
                return self.widest(candidates)
            if ran:  # what holds for other kinds only would be wrong for these
                break
        raise self.refusal()

    def widest(self, candidates: Sequence[tuple[int, Domain, Inferred]]) -> Inferred:
        """The relation that refuses least of all that ran; of equals that with most dimensions."""
        judged = [(limits, domain, self.found(f.relation, domain, f.strides)) for limits, domain, f in candidates]

        def grade(one: tuple[int, Domain, Inferred]) -> tuple[int, int, int, int]:
            limits, domain, found = one
            # A pattern that holds up to a number of dimensions, and refuses other inputs, is one by chance.
            ranks = sum("rank(" in condition for condition in domain.where)
            return limits, ranks, found.refused, -len(domain.dims)

        return min(judged, key=grade)[2]

    def domains(self, kinds: Mapping[str, str]) -> Iterator[Domain]:
        """What inputs may look like: first what a survey of them found, then the family of patterns that every operator gets."""
        family = {domain.form: domain for domain in reversed(domains(self.signature))}
        tried = set()
        if Survey.fits(self.signature):
            survey = Survey(self.signature, partial(self.probe, kinds), self.rng)
            for domain in survey.domains():
                if domain.form not in tried and self.readable(domain):
                    tried.add(domain.form)
                    yield replace(family.get(domain.form, domain), surveyed=True)  # the family's names read better
            if not survey.seeds:  # tensors of other kinds
                return
        for domain in domains(self.signature):
            if domain.form not in tried:
                yield domain

    def readable(self, domain: Domain) -> bool:
        """Whether the language has a meaning for a domain's patterns: of several groups in a tensor all but one must be known."""
        try:
            plain = plain_values(self.signature, domain, self.rng)
            sample(
                _inputs_only(domain),
                plain | {n: _guess(r, self.rng) for n, r in domain.roles.items()},
                self.rng,
                tries=3,
            )
        except SampleError:
            return True
        except RelationError:
            return False
        return True

    def probe(self, kinds: Mapping[str, str], shapes: Mapping[str, tuple[int, ...]], attrs: Mapping[str, Any]) -> bool:
        """Whether the kernel takes tensors of these shapes."""
        return not self.call(self.arguments(shapes, attrs, {k: _KINDS[kind][0] for k, kind in kinds.items()})).error

    def call(self, values: Mapping[str, Any]) -> Run:
        """Run the kernel; what it returned is remembered."""
        run = self.runner.call({a.name: values[safe_name(a.name)] for a in self.runner.schema.arguments})
        if not run.error:
            key = repr([_spec_of(value) for value in values.values()])
            if key not in self.known:
                self.known.add(key)
                self.seen.append((dict(values), run.outputs))
            self.check_aliases(run)
        return run

    def check_aliases(self, run: Run) -> None:
        """A kernel that returns an input now and then, where there is nothing to do, is told so; one that always does is wrong."""
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

    def limits(self, evidence: _Evidence) -> list[str]:
        """The restrictions that another domain might not need: those on attrs that can take other values."""
        free = [a for a in self.signature.attrs if a.kind in ("int", "int[]", "bool")]
        return restrictions(replace(self.signature, attrs=tuple(free)), evidence.observations, evidence.domain)

    def refusal(self) -> InferenceError:
        rows = [f"  {t.domain:48} {t.runs:4} runs  {t.outcome}" for t in self.trials if t.runs] or ["  no input ran"]
        last = f"\n  the last error of the kernel: {self.runner.last_error}" if self.runner.last_error else ""
        inputs = ", ".join(f"{t.name}[…]" for t in self.signature.required)
        outputs = ", ".join(f"out{n}[…]" for n in range(len(self.signature.outputs)))
        names = [a.name for a in self.runner.schema.arguments]
        return InferenceError(
            f"no shape relation was found for {self.signature.name} by running it; tried:\n"
            + restored("\n".join(rows), names)
            + last
            + f'\nwrite shape="{restored(inputs, names)} -> {outputs}" or, if random inputs are invalid, give samples='
        )

    def kinds(self) -> Iterator[dict[str, str]]:
        """Choices of what the tensors hold: all floating first, then one or more as integers, then as flags."""
        names = [t.name for t in self.signature.required]
        choices = list(product(("float", "int", "bool"), repeat=len(names))) if len(names) <= 3 else []
        choices.sort(key=lambda c: (sum(k != "float" for k in c), sum(k == "bool" for k in c)))
        if len(names) > 3:
            choices = [("float",) * len(names), ("int",) * len(names)]
        if 3 < len(names) <= 5:
            choices += [tuple("int" if n == k else "float" for n in range(len(names))) for k in range(len(names))]
        for kind, others in (("float", ("half",)), ("int", ("int32", "byte"))):
            some = [c for c in choices if kind in c and "bool" not in c and sum(k != "float" for k in c) <= 1]
            choices += [tuple(other if k == kind else k for k in c) for other in others for c in some]
        for choice in choices:
            yield dict(zip(names, choice, strict=True))

    def gather(self, domain: Domain, kinds: Mapping[str, str]) -> _Evidence:
        """Run the domain's structures; what they refuse may be explained by conditions, which the domain has from then on."""
        for _ in range(3):
            evidence = _Evidence(domain, kinds)
            relation = _inputs_only(domain)
            never = None
            for structure in range(STRUCTURES):
                wanted, attempts = (3, 40) if structure else (1, 16)
                if not self.some(evidence, relation, structure, wanted, attempts=attempts) and not self.some(
                    evidence, relation, structure, wanted, attempts=24, sizes=_ROUND
                ):
                    never = structure
                    if not structure and not domain.where and not self.some(evidence, relation, 1, 1, attempts=30):
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

    def conditions(self, evidence: _Evidence) -> list[str]:
        """Conditions that tell what ran from what was refused; each is tried to be broken before it is believed."""
        found = learn(evidence.domain, self.signature, evidence.observations, evidence.refused)
        kept = []
        for number, condition in enumerate(found):
            others = (*found[:number], *found[number + 1 :])
            broken = replace(evidence.domain, where=(*evidence.domain.where, *others, f"not ({condition})"))
            relation = _inputs_only(broken)
            for structure in range(STRUCTURES * 3):
                values = self.values(broken, relation, structure, evidence.kinds)
                if values is not None and not self.call(values).error:
                    break
            else:
                kept.append(condition)
        return kept

    def some(
        self,
        evidence: _Evidence,
        relation: Relation,
        structure: int,
        wanted: int,
        *,
        attempts: int,
        sizes: Sequence[int] = _SIZES,
    ) -> int:
        """Up to ``wanted`` successful runs of one structure; -1 if the domain has no such structure."""
        done = missed = 0
        for _ in range(attempts):
            if done >= wanted:
                break
            values = self.values(evidence.domain, relation, structure, evidence.kinds, sizes=sizes)
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

    def record(self, evidence: _Evidence, values: dict[str, Any], outputs: tuple[Any, ...]) -> None:
        evidence.values.append(values)
        evidence.outputs.append(outputs)
        evidence.observations.append(self.observation(values, outputs))

    def observation(self, values: Mapping[str, Any], outputs: tuple[Any, ...]) -> Observation:
        shapes = {t.name: _shapes(values[t.name]) for t in self.signature.tensors}
        attrs = {a.name: values[a.name] for a in self.signature.attrs}
        return Observation(shapes, attrs, tuple(_shapes(o) for o in outputs))

    def values(
        self,
        domain: Domain,
        relation: Relation,
        structure: int | None,
        kinds: Mapping[str, str],
        *,
        mixed: bool = False,
        sizes: Sequence[int] = _SIZES,
    ) -> dict[str, Any] | None:
        """Arguments of one call: tensors of the domain's shapes, attrs in their roles."""
        attrs: dict[str, Any] | None = None
        shapes: Mapping[str, Any] = {}
        for number in range(12 if domain.where else 10):
            if number == 6 and domain.where and sizes is _SIZES:
                sizes = _ROUND
            # Where axes come from attrs, and attrs from ranks, each is chosen in turn until they agree.
            plain = plain_values(self.signature, domain, self.rng)
            guess = plain | {name: _guess(role, self.rng) for name, role in domain.roles.items()}
            try:
                found = sample(relation, guess, self.rng, sizes=sizes, structure=structure, tries=20)
            except SampleError:
                continue
            shapes = found.shapes
            attrs = attr_values(self.signature, domain, shapes, self.rng)
            if attrs is not None:
                attrs |= plain
                attrs |= {
                    n: guess[n]
                    for n, role in domain.roles.items()
                    if role == "axis" and len(domain.roles) > 1 and n in guess
                }
                if _valid(relation, shapes, attrs):
                    break
                attrs = None
        if attrs is None:
            return None
        dtypes = {k: self.rng.choice(_KINDS[kind]) if mixed else _KINDS[kind][0] for k, kind in kinds.items()}
        return self.arguments(shapes, attrs, dtypes)

    def arguments(
        self, shapes: Mapping[str, Any], attrs: Mapping[str, Any], dtypes: Mapping[str, torch.dtype]
    ) -> dict[str, Any]:
        """The arguments of a call: tensors of these shapes and dtypes."""
        values = dict(attrs)
        for attr in self.signature.attrs:
            if attr.kind == "dtype" and not attr.optional and not attr.has_default:
                values[attr.name] = self.rng.choice(_ATTR_DTYPES)
        for tensor in self.signature.tensors:
            shape = shapes.get(tensor.name)
            if shape is None:
                values[tensor.name] = None
            elif tensor.is_list:
                values[tensor.name] = [self.tensor(s, dtypes[tensor.name]) for s in shape]
            else:
                values[tensor.name] = self.tensor(shape, dtypes.get(tensor.name, torch.float32))
        return values

    def tensor(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """A tensor of content that most kernels take: small positive numbers, indices 0 and 1; at times all alike."""
        alike = self.rng.random()
        if alike < 0.2:  # so that a shape that depends on values shows
            return torch.full(tuple(shape), alike < 0.1, dtype=dtype)
        generator = torch.Generator().manual_seed(self.rng.randrange(2**31))
        if dtype.is_floating_point or dtype.is_complex:
            return torch.rand(tuple(shape), generator=generator).mul_(0.8).add_(0.1).to(dtype)
        return torch.randint(0, 2, tuple(shape), generator=generator).to(dtype)

    # ------------------------------------------------------------------------------------------------------ conclusion

    def conclude(self, evidence: _Evidence) -> Inferred | None:
        """The relation that explains the evidence, checked on fresh runs; ``None`` if there is none."""
        domain, observations = evidence.domain, evidence.observations
        if any(o is None for seen in observations for o in seen.outputs):
            self.note(evidence, "an output is sometimes absent")
            return None
        solver = Solver(domain, self.signature)
        splits = selectors(self.signature, observations, domain)
        explained: list[list[Explanation]] = []
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
        dtypes = self.dtypes(evidence)
        if dtypes is None:
            self.note(evidence, "no dtype rule explains the outputs")
            return None
        shapes = [e[0] for e in explained]
        self.harmless = set()
        for tensor in self.signature.tensors:
            if tensor.optional and not tensor.is_list:
                self.harmless.add(tensor.name)
                if not self.changes_nothing(tensor.name, self.assemble(domain, shapes, dtypes, observations), evidence):
                    self.harmless.remove(tensor.name)
        relation = self.assemble(domain, shapes, dtypes, observations)
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
        relation, notes = self.with_strides(relation, evidence)
        self.note(evidence, f"explained: {relation}")
        return self.found(relation, domain, notes)

    def note(self, evidence: _Evidence, outcome: str) -> None:
        self.trials.append(Trial(evidence.domain.inputs, len(evidence.observations), outcome))

    def rivals(self, explained: Sequence[list[Explanation]], domain: Domain, evidence: _Evidence) -> list[str]:
        """Explanations of one output that differ from the first on inputs of the domain that the kernel accepts."""
        relation = _inputs_only(domain)
        for number, found in enumerate(explained):
            if len(found) < 2:
                continue
            texts = [e.text("y", "") for e in found]
            solver = Solver(domain, self.signature)
            for structure in range(STRUCTURES * 2):
                values = self.values(domain, relation, structure, evidence.kinds)
                if values is None:
                    continue
                seen = self.observation(values, ())
                results = [solver.value(text, seen) for text in texts]
                if all(r == results[0] for r in results):
                    continue
                run = self.call(values)
                if run.error:
                    continue
                truth = _shapes(run.outputs[number])
                texts = [t for t, r in zip(texts, results, strict=True) if r == truth]
            kept = [e for e in found if e.text("y", "") in texts]
            if not kept:
                return ["none on fresh inputs"]
            found[:] = kept[:1]
        return []

    def dtypes(self, evidence: _Evidence) -> list[str] | None:
        """The dtype rule of every output, from runs with all dtypes the kernel takes."""
        relation = _inputs_only(evidence.domain)
        self.only_floats = False
        runs: list[tuple[Mapping[str, Any], tuple[Any, ...]]] = list(
            zip(evidence.values, evidence.outputs, strict=True)
        )
        names = [t.name for t in self.signature.required]
        given: list[tuple[Mapping[str, Any], tuple[Any, ...]]] = []
        for dtypes in self.combinations([_choices(evidence.kinds[n]) for n in names]):
            values = self.values(evidence.domain, relation, None, evidence.kinds)
            if values is None:
                continue
            for name, dtype in zip(names, dtypes, strict=True):
                value = values[name]
                cast = (
                    [self.tensor(v.shape, dtype) for v in value]
                    if isinstance(value, list)
                    else self.tensor(value.shape, dtype)
                )
                values[name] = cast
            run = self.call(values)
            if not run.error:
                runs.append((values, run.outputs))
            for attr in self.signature.attrs:
                if attr.kind == "dtype" and attr.optional:
                    named = values | {attr.name: self.rng.choice(_ATTR_DTYPES)}
                    run = self.call(named)
                    if not run.error:
                        given.append((named, run.outputs))
        # Where no rule explains the runs with an optional dtype given, the relation demands that it is not.
        found = self.dtype_rules(runs + given) or self.dtype_rules(runs)
        if found is not None or (evidence.kinds and set(evidence.kinds.values()) != {"float"}):
            return found
        # What promotes floating tensors, and gives integers another dtype, is claimed for floating ones alone.
        floats = [run for run in runs if all(d in _KINDS["float"] for n in names for d in _listed(_dtypes(run[0][n])))]
        self.only_floats = bool(floats)
        return self.dtype_rules(floats)

    def combinations(self, choices: Sequence[Sequence[torch.dtype]]) -> list[tuple[torch.dtype, ...]]:
        """Dtypes for some inputs: one for all first, then others, at most 60."""
        if len(choices) > 3:
            alike = [(dtype,) * len(choices) for dtype in choices[0]]
            return alike + [tuple(map(self.rng.choice, choices)) for _ in range(40)]
        combinations = list(product(*choices))
        self.rng.shuffle(combinations)
        combinations.sort(key=lambda c: len(set(c)) > 1)
        return combinations[:60]

    def dtype_rules(self, runs: Sequence[tuple[Mapping[str, Any], tuple[Any, ...]]]) -> list[str] | None:
        """The simplest dtype rule of every output that explains the runs."""
        rules = []
        for number in range(len(self.signature.outputs)):
            rule = next((c for c in dtype_candidates(self.signature) if self.dtype_holds(c, number, runs)), None)
            rule = rule or self.by_attr(number, runs)
            if rule is None:
                return None
            rules.append(rule)
        return rules

    def dtype_holds(self, rule: str, number: int, runs: Sequence[tuple[Mapping[str, Any], tuple[Any, ...]]]) -> bool:
        names = [t.name for t in self.signature.tensors]
        relation = _try_parse(f"{', '.join(names)} -> y[]: {rule}")
        if relation is None:
            return False
        for values, outputs in runs:
            wanted = outputs[number]
            wanted = wanted[0] if isinstance(wanted, list) and wanted else wanted
            if not isinstance(wanted, Returned):
                continue
            shapes = {n: _shapes(values[n]) for n in names if values[n] is not None}
            dtypes = {n: _dtypes(values[n]) for n in names if values[n] is not None}
            attrs = {a.name: values[a.name] for a in self.signature.attrs}
            try:
                (result,) = relation.infer(shapes, dtypes, attrs, system=TORCH)
            except (ShapeError, RelationError, KeyError):
                return False
            assert isinstance(result, tuple)
            if result[1] != wanted.dtype:
                return False
        return True

    def by_attr(self, number: int, runs: Sequence[tuple[Mapping[str, Any], tuple[Any, ...]]]) -> str | None:
        """A dtype that a dtype attr decides, with another rule where the attr is absent."""
        for attr in self.signature.attrs:
            if attr.kind != "dtype":
                continue
            if self.dtype_holds(attr.name, number, runs):
                return attr.name
            absent = [run for run in runs if run[0][attr.name] is None]
            for candidate in dtype_candidates(self.signature) if absent else ():
                rule = f"{candidate} if {attr.name} is None else {attr.name}"
                if self.dtype_holds(candidate, number, absent) and self.dtype_holds(rule, number, runs):
                    return rule
        return None

    def assemble(
        self,
        domain: Domain,
        explained: Sequence[Explanation],
        dtypes: Sequence[str],
        observations: Sequence[Observation],
    ) -> Relation:
        """The relation as one text, with the restrictions to what was seen."""
        first = next((t.name for t in self.signature.required), None)
        outputs = []
        for number, (explanation, dtype) in enumerate(zip(explained, dtypes, strict=True)):
            outputs.append(
                _output(f"out{number}", explanation, "" if dtype == first else dtype, self.signature.outputs[number])
            )
        demands = [*domain.where]
        if self.only_floats:
            allowed = ", ".join(str(d).removeprefix("torch.") for d in _KINDS["float"])
            demands += [f"dtype({t.name}) in ({allowed})" for t in self.signature.required if not t.is_list]
        demands += restrictions(self.signature, observations, domain)
        for bound in bounds(self.signature, observations, domain):
            name = bound.partition(" ")[0]
            if not any(re.search(rf"\b{re.escape(name)} (> 0|>= [0-9])", said) for said in domain.where):
                demands.append(bound)
        for attr in self.signature.attrs:
            # A dtype attr that was only absent must stay so; one that decides the dtype is in the rule.
            if attr.kind == "dtype" and not any(attr.name in dtype for dtype in dtypes):
                demands.append(f"{attr.name} is None" if attr.optional else f"{attr.name} == {attr.name}")
        absent = [t.name for t in self.signature.tensors if t.optional and t.name not in self.harmless]
        demands += [f"{name} is None" for name in absent]
        for attr in self.signature.attrs:
            # An integer that selects alternatives has meant nothing yet where it had no value that was tried.
            if attr.kind == "int" and any(
                c.startswith((f"{attr.name} ==", f"{attr.name} in")) for e in explained for c in e.conditions
            ):
                seen = sorted({o.attrs[attr.name] for o in observations if o.attrs[attr.name] is not None})
                demands.append(f"{attr.name} in ({', '.join(map(str, seen))})")
        inputs = ", ".join(p for p in (domain.inputs, *absent) if p)
        return parse_relation(f"{inputs} -> {', '.join(outputs)}" + (f" where {', '.join(demands)}" if demands else ""))

    def changes_nothing(self, name: str, relation: Relation, evidence: _Evidence) -> bool:
        """Whether an optional tensor, given in some form that runs, leaves the outputs as the relation says."""
        inputs = _inputs_only(evidence.domain)
        dims = sorted({d for t in inputs.input_tensors for d in bound_names(t)})
        patterns = [
            f"[{d}]" if f"*{d}" not in evidence.domain.inputs else f"[*{d}]"
            for d in dims
            if f"{d}[i]" not in evidence.domain.inputs
        ]
        patterns += [f"[{a}, {b}]" for a in evidence.domain.dims for b in evidence.domain.dims if a != b]
        for pattern in patterns:
            wider = replace(evidence.domain, inputs=f"{evidence.domain.inputs}, {name}{pattern}")
            ran = 0
            for structure in range(STRUCTURES):
                values = self.values(wider, _inputs_only(wider), structure, evidence.kinds)
                run = Run(error="no inputs") if values is None else self.call(values)
                if structure == 3 and not ran:
                    break
                if run.error or values is None:
                    continue
                if compare_run(relation, self.signature, values, run.outputs):
                    return False
                ran += 1
            if ran > STRUCTURES // 2:
                return True
        return False

    def fresh(self, relation: Relation, evidence: _Evidence) -> tuple[str, bool]:
        """Compare with fresh runs, of other shapes and dtypes; the first difference, and whether a tensor had no elements."""
        inputs = _inputs_only(evidence.domain)
        compared = 0
        # Distinct sizes tell dimensions apart; equal ones make valid what distinct ones do not, such as another axis.
        # Sizes 1 and 0 are what operators treat apart.
        pools = [_SIZES] * (FRESH_RUNS * 2) + [(2, 3), (2,), (3,), (1, 2), (1, 3, 2), (1,), (0, 2)] * (FRESH_RUNS // 2)
        for structure, sizes in enumerate(pools, 100):
            values = self.values(evidence.domain, inputs, structure, evidence.kinds, mixed=0 not in sizes, sizes=sizes)
            if values is None:
                continue
            run = self.call(values)
            if run.error:
                continue
            difference = compare_run(relation, self.signature, values, run.outputs)
            if difference:
                return difference, self.is_empty(values)
            compared += 1
        return "" if compared >= 3 else f"only {compared} fresh inputs ran", False

    def is_empty(self, values: Mapping[str, Any]) -> bool:
        """Whether a tensor of a call has no elements."""
        shapes = (_shapes(values[t.name]) for t in self.signature.tensors if values[t.name] is not None)
        return any(0 in shape for shape in _flat(shapes))

    def look_around(self, evidence: _Evidence) -> None:
        """Run what is a little different from what ran: other sizes, ranks, attrs. It shows where a relation is too narrow, or wrong."""
        given = evidence.values[:: max(len(evidence.values) // 6, 1)][:6]
        for values in given:
            dtypes = {t.name: _dtypes(values[t.name]) for t in self.signature.tensors if values[t.name] is not None}
            dtypes = {n: d[0] if isinstance(d, list) else d for n, d in dtypes.items()}
            shapes = {t.name: _shapes(values[t.name]) for t in self.signature.tensors}
            attrs = {a.name: values[a.name] for a in self.signature.attrs}
            for other_shapes, other_attrs in neighbours(self.signature, shapes, attrs, self.rng):
                self.call(self.arguments(other_shapes, other_attrs, dtypes))

    def contradiction(self, relation: Relation) -> tuple[str, bool]:
        """A run of any domain that the relation accepts and says something else of, and whether a tensor had no elements."""
        for values, outputs in self.seen:
            if not refusal(relation, self.signature, values):
                difference = compare_run(relation, self.signature, values, outputs)
                if difference:
                    return difference, self.is_empty(values)
        return "", False

    def found(self, relation: Relation, domain: Domain, strides: Sequence[str] = ()) -> Inferred:
        """The relation with the evidence for it, and what it refuses of what ran."""
        narrower, narrow, inputs = "", False, _inputs_only(self.about_shapes(domain))
        structures: set[str] = set()
        for values, _ in self.seen:
            refused = refusal(relation, self.signature, values)
            if not refused:
                continue
            shapes = {t.name: _shapes(values[t.name]) for t in self.signature.tensors if values[t.name] is not None}
            # Tensors without dimensions or elements, and what attrs forbid, are edges; other shapes are a part of the operator.
            plain = all(shapes.values()) and all(0 not in shape for shape in _flat(shapes.values()))
            inside = plain and not _valid(inputs, shapes, values)
            if inside:
                structures.add(str([len(shape) for shape in _flat(shapes.values())]))
            if not narrower or (inside and not narrow):
                narrower = f"narrower than the kernel, which also runs on {self.shown(shapes, values)}: {refused}"
                narrow = inside
        alias = f"for some inputs {self.alias}"
        notes = (*strides, alias) if self.alias and alias not in strides else tuple(strides)
        return Inferred(relation, self.runner.runs, tuple(self.trials), narrower, narrow, notes, len(structures))

    def about_shapes(self, domain: Domain) -> Domain:
        """The domain without what it demands of attrs alone."""
        attrs = {a.name for a in self.signature.attrs}
        return replace(
            domain, where=tuple(w for w in domain.where if not set(re.findall(r"[^\W\d]\w*", w)) <= attrs | _WORDS)
        )

    def shown(self, shapes: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
        """The shapes of a call, and the attrs that are not their defaults."""
        return {**shapes, **{a.name: values[a.name] for a in self.signature.attrs if values[a.name] != a.default}}

    # --------------------------------------------------------------------------------------------------------- strides

    def with_strides(self, relation: Relation, evidence: _Evidence) -> tuple[Relation, list[str]]:
        """The relation with ``like`` where an output has the strides of an input, and a note where neither holds."""
        inputs = _inputs_only(evidence.domain)
        runs: list[tuple[dict[str, Any], tuple[Any, ...]]] = list(zip(evidence.values, evidence.outputs, strict=True))
        turned = 0
        for structure in range(200, 200 + FRESH_RUNS * 12):
            if turned >= FRESH_RUNS * 2:
                break
            values = self.values(evidence.domain, inputs, structure, evidence.kinds)
            if values is None:
                continue
            values = {name: self.permuted(value) for name, value in values.items()}
            run = self.call(values)
            if not run.error:
                runs.append((values, run.outputs))
                turned += 1
        notes: list[str] = []
        for number, name in enumerate(relation.outputs):
            found = [(v, o[number]) for v, o in runs if isinstance(o[number], Returned)]
            odd = next((r for _, r in found if not _same_strides(r, _contiguous(r.shape))), None)
            if odd is None:
                continue
            for tensor in self.signature.required:
                if not tensor.is_list and all(_is_like(r, v[tensor.name]) for v, r in found):
                    relation = _like(relation, number, tensor.name)
                    break
            else:
                notes.append(f"the strides of {name} are not always contiguous: {odd.strides} for {odd.shape}")
        return relation, notes

    def permuted(self, value: Any) -> Any:
        """A tensor with the same sizes, dense, in another order of memory; most of the time."""
        if isinstance(value, list):
            return [self.permuted(item) for item in value]
        if not isinstance(value, torch.Tensor) or value.dim() < 2 or self.rng.random() < 0.2:
            return value
        order = self.rng.sample(range(value.dim()), value.dim())
        inverse = [order.index(n) for n in range(value.dim())]
        return value.permute(order).contiguous().permute(inverse)

    # --------------------------------------------------------------------------------------------------------- samples

    def from_samples(self, samples: Sequence[dict[str, Any]]) -> Inferred:
        """The same with inputs that are given: the domains that fit them all, in the same order."""
        runs = []
        for values in samples:
            run = self.call(values)
            if run.error:
                raise InferenceError(f"{self.signature.name} raised for a sample: {run.error}")
            runs.append((values, run.outputs))
        if len({repr(self.observation(v, o)) for v, o in runs}) < 3:
            raise InferenceError(f"{len(runs)} sample(s) say too little: give at least three of different shapes")
        for domain in domains(self.signature):
            evidence = _Evidence(domain, {t.name: "float" for t in self.signature.required})
            relation = _inputs_only(domain)
            for values, outputs in runs:
                seen = self.observation(values, outputs)
                if not _valid(relation, seen.shapes, seen.attrs):
                    break
                self.record(evidence, values, outputs)
            else:
                found = self.conclude_samples(evidence)
                if found is not None:
                    return found
        raise self.refusal()

    def conclude_samples(self, evidence: _Evidence) -> Inferred | None:
        solver = Solver(evidence.domain, self.signature)
        observations = evidence.observations
        explained = []
        for number in range(len(self.signature.outputs)):
            found = solver.explain(number, observations, selectors(self.signature, observations, evidence.domain))
            if len(found) != 1:
                shown = " | ".join(e.text("", "") for e in found)
                self.note(
                    evidence, f"output {number}: " + (f"more than one candidate: {shown}" if found else "no candidate")
                )
                return None
            explained.append(found[0])
        runs = list(zip(evidence.values, evidence.outputs, strict=True))
        rules = []
        for number in range(len(self.signature.outputs)):
            rule = next((c for c in dtype_candidates(self.signature) if self.dtype_holds(c, number, runs)), None)
            if rule is None:
                self.note(evidence, f"no dtype rule explains output {number}")
                return None
            rules.append(rule)
        relation = self.assemble(evidence.domain, explained, rules, observations)
        return self.found(relation, evidence.domain)


def refusal(relation: Relation, signature: Signature, values: Mapping[str, Any]) -> str:
    """Why a relation refuses the inputs of a run, or an empty text."""
    try:
        _promised(relation, signature, values)
    except (ShapeError, RelationError) as error:
        return str(error)
    return ""


def compare_run(relation: Relation, signature: Signature, values: Mapping[str, Any], outputs: Sequence[Any]) -> str:
    """How a relation differs from one run, or an empty text."""
    try:
        promised = _promised(relation, signature, values)
    except (ShapeError, RelationError) as error:
        return f"{relation} refuses an input that runs: {error}"
    for name, said, output in zip(relation.outputs, promised, outputs, strict=True):
        got = [_spec(t) for t in output] if isinstance(output, list) else _spec(output)
        if got != said:
            shapes = {n: _shapes(values[n]) for n in relation.inputs}
            return f"{name}: {relation} says {said}, the kernel returned {got} for {shapes}"
    return ""


def _promised(relation: Relation, signature: Signature, values: Mapping[str, Any]) -> list[Any]:
    names = relation.inputs
    shapes = {n: _shapes(values[n]) for n in names if values.get(n) is not None}
    dtypes = {n: _dtypes(values[n]) for n in names if values.get(n) is not None}
    specs = relation.infer(shapes, dtypes, {a.name: values[a.name] for a in signature.attrs}, system=TORCH)
    return [
        [(tuple(s), d) for s, d in spec] if isinstance(spec, list) else spec and (tuple(spec[0]), spec[1])
        for spec in specs
    ]


def _spec(output: Returned | None) -> tuple[tuple[int, ...], torch.dtype] | None:
    return None if output is None else (output.shape, output.dtype)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _spec_of(value: Any) -> Any:
    """What of an argument tells calls apart."""
    if isinstance(value, list) and value and isinstance(value[0], torch.Tensor):
        return [_spec_of(item) for item in value]
    return (tuple(value.shape), value.dtype, value.stride()) if isinstance(value, torch.Tensor) else value


def _contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(torch.empty(tuple(shape), device="meta").stride())


def _same_strides(output: Returned, strides: Sequence[int]) -> bool:
    """Equal where it matters: the stride of a dimension of size 1 means nothing, nor do any of an empty tensor."""
    return 0 in output.shape or all(
        a == b for a, b, size in zip(output.strides, strides, output.shape, strict=True) if size != 1
    )


def _is_like(output: Returned, source: torch.Tensor) -> bool:
    """Whether an output has the shape of an input, and the strides that ``torch.empty_like`` gives."""
    if output.shape != tuple(source.shape):
        return False
    meta = torch.empty_strided(source.shape, source.stride(), device="meta")
    return _same_strides(output, torch.empty_like(meta).stride())


def _like(relation: Relation, number: int, source: str) -> Relation:
    """The relation with one output as ``like source``."""
    tensor = relation.output_tensors[number]
    (alternative,) = tensor.alternatives if len(tensor.alternatives) == 1 else (None,)
    if alternative is None:
        return relation
    first = relation.inputs[0]
    dtype = alternative.dtype if alternative.dtype is not None else Name(first) if first != source else None
    outputs = list(relation.output_tensors)
    outputs[number] = replace(tensor, alternatives=(replace(alternative, shape=Like(Name(source)), dtype=dtype),))
    return parse_relation(str(replace(relation, output_tensors=tuple(outputs))))


def _output(name: str, explanation: Explanation, dtype: str, is_list: bool) -> str:
    if not is_list:
        return explanation.text(name, dtype)
    return f"{name}{explanation.shapes[0]}{f': {dtype}' if dtype else ''}"


_WORDS = {"is", "not", "or", "and", "None", "in"}


def _flat(shapes: Iterable[Any]) -> Iterator[tuple[int, ...]]:
    for shape in shapes:
        if isinstance(shape, list):
            yield from shape
        else:
            yield shape


def _inputs_only(domain: Domain) -> Relation:
    return domain.relation("")


def _try_parse(text: str) -> Relation | None:
    with contextlib.suppress(RelationError):
        return parse_relation(text)
    return None


def _valid(relation: Relation, shapes: Mapping[str, Any], attrs: Mapping[str, Any]) -> bool:
    shapes = {n: shapes.get(n) for n in relation.inputs}
    dtypes = {
        n: None if s is None else ["float32"] * len(s) if isinstance(s, list) else "float32" for n, s in shapes.items()
    }
    try:
        relation.infer(shapes, dtypes, attrs)
    except (ShapeError, RelationError):
        return False
    return True


def _guess(role: str, rng: random.Random) -> Any:
    """A value that lets shapes be chosen before the attr is."""
    if role == "permutation":
        rank = rng.randint(0, 4)
        return rng.sample(range(rank), rank)
    return rng.choice((0, -1, 1, -2)) if role in ("axis", "insert") else [] if role == "axes" else [1]


def _choices(kind: str) -> tuple[torch.dtype, ...]:
    if kind == "float":
        return (*_KINDS["float"], torch.int64, torch.int32, torch.uint8, torch.bool, torch.complex64)
    return (torch.int64, torch.int32, torch.uint8, torch.bool) if kind == "int" else (torch.bool, torch.uint8)


def _shapes(value: Any) -> Any:
    if value is None:
        return None
    return [tuple(t.shape) for t in value] if isinstance(value, list) else tuple(value.shape)


def _dtypes(value: Any) -> Any:
    return [t.dtype for t in value] if isinstance(value, list) else value.dtype
