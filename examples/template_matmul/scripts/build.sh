#!/bin/bash
# Builds a part of the project into output/: bash scripts/build.sh python_extension
set -e
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PART=${1:?usage: build.sh python_extension}
cmake -S "$PART" -B "build/$PART" -DCMAKE_BUILD_TYPE=Release -DCMAKE_LIBRARY_OUTPUT_DIRECTORY="$PWD/output/$PART"
cmake --build "build/$PART"
