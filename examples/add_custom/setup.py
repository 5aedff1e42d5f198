"""Builds the extension as the torch_npu documents do: ``python setup.py build_ext --inplace``."""

import os

import torch
import torch_npu
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension
from torch_npu.utils.cpp_extension import NpuExtension

include = os.path.join(os.path.dirname(torch_npu.__file__), "include")
major, minor = torch.__version__.split(".")[:2]

setup(
    name="add_custom",
    version="1.0",
    ext_modules=[
        NpuExtension(
            name="add_custom_ext",
            sources=["extension.cpp"],
            extra_compile_args=[
                f"-DCURRENT_VERSION=V{major}R{minor}",
                f"-I{include}/third_party/acl/inc",
                f"-I{include}/third_party/hccl/inc",
                f"-I{include}/third_party/op-plugin",
            ],
        )
    ],
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=True)},
)
