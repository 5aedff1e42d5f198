"""Calls and answers of shape functions as texts for messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ascend_graph.inference.running import Run
from ascend_graph.prototypes import OpPrototype
from ascend_graph.shapes.functions import Answer, InferredOutput, InputSpec


def shown(prototype: OpPrototype, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> str:
    """Return a call as text: the shapes of its inputs, and the attrs that differ from their defaults."""
    texts = []
    for parameter, spec in zip(prototype.inputs, inputs, strict=True):
        if spec is None:
            continue
        each = [spec] if isinstance(spec, InputSpec) else spec
        texts.append(", ".join(f"{parameter.name}[{', '.join(map(str, s.shape))}]" for s in each))
    defaults = {a.name: a.default for a in prototype.attrs}
    texts += [f"{name}={value!r}" for name, value in attrs.items() if value != defaults.get(name)]
    return ", ".join(texts)


def answer_text(answer: Any) -> str:
    if answer is None:
        return "an error"
    return ", ".join(map(text_of, answer))


def run_text(run: Run) -> str:
    if run.error:
        return f"an error ({run.error})"
    return ", ".join("none" if o is None else str(o) for o in run.outputs)


def flat_specs(output: Answer) -> list[InferredOutput]:
    """Return the tensors of an output: none, one, or those of a list."""
    if output is None:
        return []
    return [output] if isinstance(output, InferredOutput) else list(output)


def text_of(output: Answer) -> str:
    """Return an output as text: ``[2, 3]``, two of them for a list, or ``none``."""
    return ", ".join(f"[{', '.join(map(str, spec.shape))}]" for spec in flat_specs(output)) or "none"
