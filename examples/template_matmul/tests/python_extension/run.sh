#!/bin/bash
# Runs the test with PyTorch's libraries on the search path of the loader.
cd "$(dirname "${BASH_SOURCE[0]}")"
source ../../output/python_extension/set_env.sh
python3 torch_test.py
