"""Builds AddCustom's operator package for the host runtime: ``python package.py DIRECTORY``."""

import sys
from pathlib import Path

from host_kernel import add_custom

from ascend_graph.host import build_operator_package

build_operator_package(
    sys.argv[1],
    Path(__file__).with_name("op_proto.h"),
    {"AddCustom": add_custom},
    relations={"AddCustom": "x[...], y[...] -> z[...]"},
)
