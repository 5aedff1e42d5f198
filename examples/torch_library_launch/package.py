"""Builds AddCustom's operator package from the kernel of this directory: ``python package.py DIRECTORY``."""

import sys
from pathlib import Path

from ascend_graph.host import build_operator_package

here = Path(__file__).parent
build_operator_package(
    sys.argv[1],
    here / "op_proto.h",
    {"AddCustom": here / "host_op.asc"},
    relations={"AddCustom": "x[...], y[...] -> z[...]"},
)
