#!/bin/bash
# Builds the operator and runs the eager and the compiled tests.
set -e
cd "$(dirname "${BASH_SOURCE[0]}")"
python3 setup.py -q build_ext --inplace
python3 test_ops_custom.py
python3 test_ops_custom_register_in_graph.py
