"""Builds AddCustom's operator package, from the kernel that the eager operator launches, into build/opp."""

from ascend_graph.host.package import build_operator_package

build_operator_package(
    "build/opp", "op_proto.h", {"AddCustom": "package_kernel.asc"}, relations={"AddCustom": "x[...], y[...] -> z[...]"}
)
