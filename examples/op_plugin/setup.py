"""Builds op_plugin_patch as an extension: what rebuilding torch_npu with the patch does, without rebuilding torch_npu.

The functions of op_plugin_functions.yaml are registered in the namespace npu; their adapters are ``op_api::<function>``.
"""

import os
from pathlib import Path

import torch
import torch_npu
import yaml
from setuptools import setup
from torch._C import parse_schema
from torch.utils.cpp_extension import BuildExtension
from torch_npu.utils.cpp_extension import NpuExtension

HERE = Path(__file__).resolve().parent
VERSION = "V{}R{}".format(*torch.__version__.split(".")[:2])  # what torch_npu's headers ask for
INCLUDE = os.path.join(os.path.dirname(torch_npu.__file__), "include")


def registrations(functions):
    """C++ that declares, defines and implements the functions of the yaml."""
    types = {"Tensor": "const at::Tensor&", "int": "int64_t", "float": "double", "bool": "bool"}
    lines = ["#include <torch/csrc/utils/pybind.h>", "#include <torch/library.h>", "", "namespace op_api {"]
    schemas = [(text, parse_schema(text)) for text in functions]
    for text, schema in schemas:
        if len(schema.returns) != 1 or any(str(a.type) not in types for a in schema.arguments):
            raise SystemExit(f"{text}: arguments must be of {', '.join(types)}, and one Tensor be returned")
        arguments = ", ".join(f"{types[str(a.type)]} {a.name}" for a in schema.arguments)
        lines.append(f"at::Tensor {schema.name}({arguments});")
    lines += ["}", "", "TORCH_LIBRARY_FRAGMENT(npu, m) {", *(f'    m.def("{text}");' for text, _ in schemas), "}"]
    lines += ["TORCH_LIBRARY_IMPL(npu, PrivateUse1, m) {"]
    lines += [f'    m.impl("{schema.name}", &op_api::{schema.name});' for _, schema in schemas]
    return "\n".join([*lines, "}", "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}", ""])


functions = yaml.safe_load((HERE / "op_plugin_patch/op_plugin_functions.yaml").read_text())["custom"]
generated = HERE / "build/register.cpp"
generated.parent.mkdir(exist_ok=True)
generated.write_text(registrations([function["func"] for function in functions]))

setup(
    name="op_plugin_patch",
    version="1.0",
    py_modules=[],
    ext_modules=[
        NpuExtension(
            name="op_plugin_patch_lib",
            sources=[str(path) for path in (generated, *sorted((HERE / "op_plugin_patch").glob("*.cpp")))],
            extra_compile_args=[
                f"-DCURRENT_VERSION={VERSION}",
                *(f"-I{INCLUDE}/third_party/{name}" for name in ("acl/inc", "hccl/inc", "op-plugin")),
            ],
        )
    ],
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=True)},
)
