"""What changed between two versions, and whether callers break."""

from __future__ import annotations

import pytest

from ascend_graph.prototypes import parse_text
from ascend_graph.prototypes.diff import compare

BASE = """
REG_OP(A)
    .INPUT(x, TensorType({DT_FLOAT}))
    .INPUT(w, TensorType({DT_FLOAT, DT_INT8}))
    .OUTPUT(y, TensorType({DT_FLOAT}))
    .ATTR(n, Int, 1)
    .REQUIRED_ATTR(m, Float)
    .OP_END_FACTORY_REG(A)
"""


@pytest.mark.parametrize(
    ("old", "new", "effect", "text"),
    [
        ("REG_OP(A)", "REG_OP(A) /* same */", None, ""),
        (".INPUT(x, TensorType({DT_FLOAT}))", ".INPUT(x, TensorType(DT_FLOAT))", None, ""),
        (BASE, "", "breaks", "the op is gone"),
        ("", BASE.replace("(A)", "(B)"), "extends", "the op is new"),
        (".INPUT(w", ".OPTIONAL_INPUT(w", "extends", "input w was required and is optional"),
        (".INPUT(w", ".DYNAMIC_INPUT(w", "breaks", "input w was required and is dynamic"),
        (".INPUT(x", ".OPTIONAL_INPUT(b, T)\n.INPUT(x", "breaks", "optional input b is new"),
        (".INPUT(w, TensorType({DT_FLOAT, DT_INT8}))", "", "breaks", "input w is gone"),
        ("DT_FLOAT, DT_INT8", "DT_INT8", "breaks", "input w no longer takes DT_FLOAT"),
        ("DT_FLOAT, DT_INT8", "DT_FLOAT, DT_INT8, DT_BF16", "extends", "input w also takes DT_BF16"),
        (".OUTPUT(y", ".OUTPUT(x, T)\n.OUTPUT(y", "breaks", "the outputs y became x, y"),
        ("Int, 1", "Int, 2", "changes", "attr n had the default 1, now 2"),
        ("Int, 1", "Float, 1", "breaks", "attr n was Int and is Float"),
        (".ATTR(n, Int, 1)", ".REQUIRED_ATTR(n, Int)", "breaks", "attr n is now required"),
        (".REQUIRED_ATTR(m, Float)", ".ATTR(m, Float, 0.5)", "extends", "attr m is now optional"),
        (".ATTR(n", '.ATTR(k, String, "a")\n.ATTR(n', "extends", 'attr k: String = "a" is new'),
        (".ATTR(n", ".REQUIRED_ATTR(k, String)\n.ATTR(n", "breaks", "required attr k: String is new"),
        (".ATTR(n", ".GRAPH(g)\n.ATTR(n", "breaks", "subgraphs none became g"),
    ],
)
def test_changes(old: str, new: str, effect: str | None, text: str) -> None:
    changed = BASE.replace(old, new) if old else BASE + new
    changes = compare(parse_text(BASE).prototypes, parse_text(changed).prototypes)
    if effect is None:
        assert changes == []
    else:
        assert (effect, text) in [(change.effect.value, change.text) for change in changes]


def test_swapped_inputs_break_callers() -> None:
    text = BASE.replace("(x,", "(q,").replace("(w,", "(x,").replace("(q,", "(w,")
    changes = compare(parse_text(BASE).prototypes, parse_text(text).prototypes)
    assert "the inputs have another order: w, x" in [change.text for change in changes]
