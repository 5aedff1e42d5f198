# Adds PyTorch's libraries to the search path of the loader.
TORCH_LIB=$(python3 -c "import os, torch; print(os.path.join(os.path.dirname(torch.__file__), 'lib'))")
TORCH_NPU_LIB=$(python3 -c "import os, torch_npu; print(os.path.join(os.path.dirname(torch_npu.__file__), 'lib'))")
export LD_LIBRARY_PATH=$TORCH_LIB:$TORCH_NPU_LIB:$LD_LIBRARY_PATH
