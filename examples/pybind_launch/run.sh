#!/bin/bash
# Compiles the kernel and the module with CMake and runs the test: bash run.sh [-v SOC_VERSION]
set -e
cd "$(dirname "${BASH_SOURCE[0]}")"
SOC_VERSION=Ascend910B1
while getopts v: option; do
    case $option in
        v) SOC_VERSION=$OPTARG ;;
        *) exit 1 ;;
    esac
done
_ASCEND_INSTALL_PATH=${ASCEND_HOME_PATH:-/usr/local/Ascend/ascend-toolkit/latest}
source "$_ASCEND_INSTALL_PATH/bin/setenv.bash"

rm -rf build
cmake -B build -DSOC_VERSION="$SOC_VERSION" -DASCEND_CANN_PACKAGE_PATH="$_ASCEND_INSTALL_PATH"
cmake --build build

python3 add_custom_test.py
