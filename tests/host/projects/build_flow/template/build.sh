#!/bin/bash
set -e
cmake -S . -B build_out --preset=default
cmake --build build_out --target binary
cmake --build build_out --target install
