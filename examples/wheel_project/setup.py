import os

import torch
import torch_npu
from setuptools import find_packages, setup
from torch.utils.cpp_extension import BuildExtension
from torch_npu.utils.cpp_extension import NpuExtension

PYTORCH_NPU_INSTALL_PATH = os.path.dirname(os.path.abspath(torch_npu.__file__))
USE_NINJA = os.getenv("USE_NINJA") == "1"

ext1 = NpuExtension(
    name="custom_ops_lib",
    sources=["./csrc/extension_add.cpp", "./csrc/register.cpp"],
    extra_compile_args=[
        "-DCURRENT_VERSION=V{}R{}".format(*torch.__version__.split(".")[:2]),  # what torch_npu's headers ask for
        "-I" + os.path.join(PYTORCH_NPU_INSTALL_PATH, "include/third_party/acl/inc"),
        "-I" + os.path.join(PYTORCH_NPU_INSTALL_PATH, "include/third_party/hccl/inc"),
        "-I" + os.path.join(PYTORCH_NPU_INSTALL_PATH, "include/third_party/op-plugin"),
    ],
)

setup(
    name="custom_ops",
    version="1.0",
    keywords="custom_ops",
    ext_modules=[ext1],
    packages=find_packages(include=["custom_ops"]),
    package_data={"custom_ops": ["*.h"]},
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=USE_NINJA)},
)
