"""Runs with all dtypes that a kernel takes, and the dtype rules that they show."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from ascend_graph.inference.calls import KINDS, attr_dtypes
from ascend_graph.inference.conclusions.dtype_rules import Call, dtype_holds, dtype_rules
from ascend_graph.inference.experiments import STRUCTURES, DomainRuns, Experiments
from ascend_graph.inference.observed import dtypes_of, listed


class DtypeRuns:
    """Search for the dtype rules of one operator."""

    def __init__(self, experiments: Experiments) -> None:
        self.experiments, self.signature, self.calls = experiments, experiments.signature, experiments.calls
        #: Only kind of tensors, float or int, for which the rules hold; "" if they hold for every run.
        self.only = ""
        #: True if they hold only where dtypes that need not be given are not.
        self.at_default = False

    def rules(self, evidence: DomainRuns) -> list[str] | None:
        """Return the dtype rule of every output, from runs with all dtypes the kernel takes, or None."""
        relation = evidence.domain.relation("")
        self.only = ""
        runs: list[Call] = list(zip(evidence.values, evidence.outputs, strict=True))
        names = [t.name for t in self.signature.required]
        given: list[Call] = []
        for dtypes in self.calls.combinations([self.calls.dtype_choices(n, evidence.kinds[n]) for n in names]):
            values = self.calls.values(evidence.domain, relation, None, evidence.kinds)
            if values is None:
                continue
            for name, dtype in zip(names, dtypes, strict=True):
                values[name] = self.cast(values[name], dtype)
            for case in self.cases(values):
                run = self.experiments.call(case)
                if not run.error:
                    runs.append((case, run.outputs))
            for attr in self.signature.attrs:
                if attr.kind == "dtype" and (attr.optional or attr.has_default):
                    named = values | {attr.name: self.calls.rng.choice(attr_dtypes(attr))}
                    run = self.experiments.call(named)
                    if not run.error:
                        given.append((named, run.outputs))
        # Where no rule explains the runs with such a dtype given, the relation demands that it is not.
        by_case = not self.experiments.runner.has_strides
        found = dtype_rules(self.signature, runs + given, by_case=by_case)
        self.at_default = found is None
        found = found or dtype_rules(self.signature, runs, by_case=by_case)
        if found is not None:
            return found
        # What promotes floating tensors, and gives integers another dtype, is claimed for floating ones alone; so with flags.
        for kind in ("float", "int"):
            if set(evidence.kinds.values()) <= {kind}:
                same = [r for r in runs if all(d in KINDS[kind] for n in names for d in listed(dtypes_of(r[0][n])))]
                self.only = kind if same else ""
                return dtype_rules(self.signature, same)
        return None

    def uniform_lists(self, evidence: DomainRuns, rules: Sequence[str]) -> frozenset[str]:
        """Return the lists of which the dtype rules do not hold where their tensors have several dtypes."""
        relation, found = evidence.domain.relation(""), set()
        names = [t.name for t in self.signature.required]
        lists = [t.name for t in self.signature.required if t.is_list and self.experiments.runner.has_strides]
        for name, _ in itertools.product(lists, range(STRUCTURES)):
            values = self.calls.values(evidence.domain, relation, None, evidence.kinds)
            if values is None or len(values[name]) < 2:
                continue
            dtypes = self.calls.rng.sample(self.calls.dtype_choices(name, evidence.kinds[name]), 2)
            for first, alike in itertools.product((0, 1), (True, False)):  # the first tensor's may be the common one
                given = {} if alike else {n: self.cast(values[n], dtypes[1 - first]) for n in names}
                mixed = [self.calls.tensor(t.shape, dtypes[(first + n) % 2]) for n, t in enumerate(values[name])]
                run = self.experiments.call({**values, **given, name: mixed})
                call: Call = {**values, **given, name: mixed}, run.outputs
                if not run.error and not all(self.explains(rule, n, call) for n, rule in enumerate(rules)):
                    found.add(name)
        return frozenset(found)

    def cast(self, value: Any, dtype: torch.dtype) -> Any:
        """Return a tensor, or a list of them, of the same shapes in another dtype."""
        if isinstance(value, list):
            return [self.calls.tensor(one.shape, dtype) for one in value]
        return self.calls.tensor(value.shape, dtype)

    def explains(self, rule: str, number: int, call: Call) -> bool:
        """Return whether a rule holds for each tensor of an output of a call."""
        output = call[1][number]
        several = isinstance(output, list) and len({one.dtype for one in output if one is not None}) > 1
        by_element = any(rule == t.name for t in self.signature.required)
        return (by_element or not several) and dtype_holds(self.signature, rule, number, [call])

    def cases(self, values: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield a call, and with it those in which a flag is turned, a number is of another kind, an optional attr absent."""
        yield values
        for attr in self.signature.attrs:
            if attr.kind == "bool":
                yield {**values, attr.name: not values[attr.name]}
            elif attr.kind == "number":
                yield from ({**values, attr.name: value} for value in (2, 0.5))
            if attr.optional and attr.kind != "dtype" and values[attr.name] is not None:
                yield {**values, attr.name: None}
