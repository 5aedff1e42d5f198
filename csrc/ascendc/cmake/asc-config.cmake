# find_package(ASC): the CMake language ASC, for projects that list .asc sources in their targets.
#
#   find_package(ASC REQUIRED)
#   project(demo LANGUAGES ASC CXX)
#   add_executable(demo add_custom.asc)
#
# It brings the functions for operator packages, too: npu_op_package and those around it.
#
# This file lies in <home>/lib64/cmake/ASC.
get_filename_component(ASC_HOME "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
list(APPEND CMAKE_MODULE_PATH "${ASC_HOME}/compiler/tikcpp/ascendc_kernel_cmake/asc_modules")
include("${ASC_HOME}/compiler/tikcpp/ascendc_kernel_cmake/ascendc.cmake")
include("${ASC_HOME}/compiler/tikcpp/ascendc_kernel_cmake/operator_package/npu_op.cmake")
set(ASC_FOUND TRUE)
