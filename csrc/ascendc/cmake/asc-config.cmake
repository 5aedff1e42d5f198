# find_package(ASC): the CMake language ASC, for projects that list .asc sources in their targets.
#
#   find_package(ASC REQUIRED)
#   project(demo LANGUAGES ASC CXX)
#   add_executable(demo add_custom.asc)
#
# This file lies in <home>/lib64/cmake/ASC.
get_filename_component(ASC_HOME "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
list(APPEND CMAKE_MODULE_PATH "${ASC_HOME}/compiler/tikcpp/ascendc_kernel_cmake/asc_modules")
include("${ASC_HOME}/compiler/tikcpp/ascendc_kernel_cmake/ascendc.cmake")
set(ASC_FOUND TRUE)
