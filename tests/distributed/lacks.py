"""What older versions of PyTorch and TorchAir lack, told by the errors of their ranks."""

from __future__ import annotations

import re

#: Errors of an older PyTorch or TorchAir, as patterns, the first version without, and what it lacks.
_LACKING = (
    (
        r"aten::_foreach_copy_: argument 'src' .* whose memory was freed",
        (2, 10),
        "TorchAir copies parameters into a captured graph that FSDP has not gathered",
    ),
    (
        r"Split sizes dosen't match total dim 0 size",
        (2, 10),
        "TorchAir's converter of all_to_all_single takes no even split",
    ),
    (r"Operator aten\.\w+\.\w+ does not have a sharding strategy registered", (2, 8), "DTensor has no rule for cumsum"),
    (
        (
            r"Attempted to flatten (sharded dimension|multiple dimensions)|Sharding propagation failed for "
            r"Op\(op=aten\.view"
        ),
        (2, 13),
        "DTensor reshapes no tensor of which a later dimension is sharded",
    ),
    (r"Unknown keyword argument 'comm_mode' for operator", (2, 13), "products with communication have no comm_mode"),
)


def lacking(error: BaseException, version: str) -> str | None:
    """What this torch_npu lacks, where that is why a case failed: said in the place of the error, and no failure."""
    number = tuple(map(int, version.split(".")[:2]))
    for pattern, since, what in _LACKING:
        if number < since and re.search(pattern, str(error), re.DOTALL):
            return f"{LACKS}{what}"
    return None


#: How a line of a rank begins that says what the version lacks.
LACKS = "not with this version: "
