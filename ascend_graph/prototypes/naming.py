"""Names derived from an op type."""

from __future__ import annotations

import re

#: Suffix of the operator's name under which a project registers its kernel that infers output shapes and dtypes.
INFER_SUFFIX = ":infer"

_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(op_type: str) -> str:
    """Return ``AddCustom`` as ``add_custom``, the name of generated files and ``torch.ops.ascend`` operators.

    >>> [snake_case(name) for name in ("AddCustom", "MatMulV2", "LSTMCell", "BN2DGrad", "relu")]
    ['add_custom', 'mat_mul_v2', 'lstm_cell', 'bn2_d_grad', 'relu']
    """
    return _WORD.sub("_", op_type).lower()
