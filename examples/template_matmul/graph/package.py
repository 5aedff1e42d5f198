"""Builds BasicMatmul's operator package: ``python package.py DIRECTORY``."""

import sys
from pathlib import Path

from ascend_graph.host import build_operator_package

here = Path(__file__).parent
build_operator_package(
    sys.argv[1],
    here / "op_proto.h",
    {"BasicMatmul": here / "host_op.asc"},
    relations={"BasicMatmul": "mat1[m, k], mat2[k, n] -> y[m, n]"},
)
