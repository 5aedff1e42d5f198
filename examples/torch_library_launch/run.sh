#!/bin/bash
# Compiles add_custom.asc to build/libadd_custom.so and runs the test.
set -e
cd "$(dirname "${BASH_SOURCE[0]}")"
TORCH=$(python3 -c "import torch, os; print(os.path.dirname(torch.__file__))")
TORCH_NPU=$(python3 -c "import torch_npu, os; print(os.path.dirname(torch_npu.__file__))")
PYTHON_INCLUDE=$(python3 -c "import sysconfig; print(sysconfig.get_path('include'))")

# torch's headers ask for C++20 from 2.14 on.
STANDARD=c++17
grep -q "C++20 or later" "$TORCH/include/ATen/ATen.h" && STANDARD=c++20

mkdir -p build
bisheng -x asc --npu-arch=dav-2201 -shared -fPIC -std=$STANDARD add_custom.asc -o build/libadd_custom.so \
    -I"$PYTHON_INCLUDE" -I"$TORCH/include" -I"$TORCH/include/torch/csrc/api/include" -I"$TORCH_NPU/include" \
    -L"$TORCH/lib" -ltorch -ltorch_cpu -lc10 -L"$TORCH_NPU/lib" -ltorch_npu

python3 add_custom_test.py
