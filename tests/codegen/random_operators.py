"""Random prototypes with shape relations, of all that an operator project can have; the same seed gives the same
ones."""

from __future__ import annotations

import random
from dataclasses import dataclass

#: Lists of dtypes of inputs; an output has one of them, or one of its own.
DTYPES = ("DT_FLOAT", "DT_FLOAT16, DT_FLOAT", "DT_FLOAT16", "DT_INT32, DT_FLOAT")


@dataclass(frozen=True)
class RandomOperator:
    """One operator: its REG_OP, and its relation."""

    op_type: str
    reg_op: str
    relation: str


def random_operator(seed: int) -> RandomOperator:
    """Return the operator of a seed."""
    rng = random.Random(seed)
    op_type = f"Rnd{seed}"
    lines = [f"REG_OP({op_type})"]
    dtypes = rng.choice(DTYPES)
    lines.append(f"    .INPUT(x, TensorType({{{dtypes}}}))")
    inputs = ["x[*s, n]: T"]
    if rng.random() < 0.5:
        lines.append(f"    .INPUT(w, TensorType({{{dtypes}}}))")
        inputs.append(rng.choice(("w[n]: T", "w[*s, n]: T", "w[n, k]: T")))
    has_bias = rng.random() < 0.6
    if has_bias:
        lines.append(f"    .OPTIONAL_INPUT(bias, TensorType({{{dtypes}}}))")
        inputs.append("bias[n]: T")
    attrs = {
        "want": "Bool, false",
        "mode": 'String, "keep"',
        "level": "Int, 2",
        "alpha": "Float, 0.5",
        "axes": "ListInt, {0}",
    }
    used = rng.sample(list(attrs), rng.randint(1, 4))
    outputs = []
    for name in ("y", "z", "v")[: rng.randint(1, 3)]:
        shape, own = _output(rng, used, "w[n, k]: T" in inputs, has_bias)
        lines.append(f"    .OUTPUT({name}, TensorType({{{dtypes}{own}}}))")
        outputs.append(f"{name}{shape}")
    lines += [f"    .ATTR({name}, {attrs[name]})" for name in used]
    lines.append(f"    .OP_END_FACTORY_REG({op_type})")
    return RandomOperator(op_type, "\n".join(lines) + "\n", f"{', '.join(inputs)} -> {', '.join(outputs)}")


def _output(rng: random.Random, attrs: list[str], has_k: bool, has_bias: bool) -> tuple[str, str]:
    """Return the shape and dtype of an output in the relation, and the dtypes that it has in addition to those of x."""
    shape = rng.choice(["[*s, n]", "[*s]", "[*s, 1]", "[n]", "[*s, 2 * n]", *(["[*s, k]"] if has_k else [])])
    conditions = [
        *(["want"] if "want" in attrs else []),
        *(['mode == "drop"'] if "mode" in attrs else []),
        *(["level > 2"] if "level" in attrs else []),
        *(["bias is not None"] if has_bias else []),
    ]
    dtype, own = rng.choice([(": x", ""), (": float32", ", DT_FLOAT"), (": int8", ", DT_INT8")])
    if conditions and rng.random() < 0.3 and "bias" not in (condition := rng.choice(conditions)):
        dtype, own = f": int8 if {condition} else x", ", DT_INT8"
        return f"{shape}{dtype}", own
    if conditions and rng.random() < 0.5:
        return f"{shape}{dtype} if {rng.choice(conditions)} else {rng.choice(['None', '[n]'])}", own
    return f"{shape}{dtype}", own
