# find_package(tikicpulib): kernels as functions of a program for the processor of the host (CPU debugging).
#
#   add_library(kernels SHARED add_custom.cpp)
#   target_link_libraries(kernels PUBLIC tikicpulib::${SOC_VERSION})
#
# It lies in <home>/lib64/cmake/tikicpulib and in <home>/tools/tikicpulib/lib/cmake.
get_filename_component(_tikicpulib_home "${CMAKE_CURRENT_LIST_DIR}" ABSOLUTE)
while(NOT EXISTS "${_tikicpulib_home}/lib64/libascendc_runtime.so")
    get_filename_component(_tikicpulib_home "${_tikicpulib_home}" DIRECTORY)
endwhile()

# Sources that define kernels go through the driver of the kernels' compiler; it starts the given compiler for all others.
set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env ASCENDC_HOST_HOME=${_tikicpulib_home} ${_tikicpulib_home}/bin/bisheng --cpu-debug
    ${CMAKE_CXX_COMPILER_LAUNCHER})

file(GLOB _tikicpulib_known RELATIVE "${_tikicpulib_home}/compiler/data/platform_config"
    "${_tikicpulib_home}/compiler/data/platform_config/*.ini")
list(TRANSFORM _tikicpulib_known REPLACE "[.]ini$" "")
# The others have no place in the table of processors, and build files name them.
foreach(_tikicpulib_chip ${SOC_VERSION} ${ASCEND_PRODUCT_TYPE} ${_tikicpulib_known} Ascend910A Ascend910B Ascend310B1 Ascend310B2
        Ascend310B3 Ascend310B4)
    if(TARGET tikicpulib::${_tikicpulib_chip})
        continue()
    endif()
    add_library(tikicpulib::${_tikicpulib_chip} INTERFACE IMPORTED)
    set_target_properties(tikicpulib::${_tikicpulib_chip} PROPERTIES
        INTERFACE_COMPILE_DEFINITIONS "ASCENDC_CPU_DEBUG=1;__CCE_KT_TEST__=1"
        INTERFACE_INCLUDE_DIRECTORIES "${_tikicpulib_home}/tools/tikicpulib/lib/include;${_tikicpulib_home}/include"
        INTERFACE_LINK_DIRECTORIES "${_tikicpulib_home}/lib64"
        INTERFACE_LINK_LIBRARIES "ascendc_runtime;ascendcl;${CMAKE_DL_LIBS}"
        # A program finds the launch functions of kernels by their names.
        INTERFACE_LINK_OPTIONS "-rdynamic;-Wl,-rpath,${_tikicpulib_home}/lib64")
    if(_tikicpulib_chip MATCHES "^Ascend(950|910_95)")
        set_property(TARGET tikicpulib::${_tikicpulib_chip} PROPERTY INTERFACE_COMPILE_OPTIONS --npu-arch=dav-3510)
    endif()
endforeach()
if(SOC_VERSION AND NOT SOC_VERSION MATCHES "^Ascend(910B[1-9]|910_93|950|910_95)")
    message(STATUS "ascend_graph: kernels for ${SOC_VERSION} are checked by the rules of dav-2201 (Atlas A2)")
endif()
unset(_tikicpulib_chip)
unset(_tikicpulib_known)
set(tikicpulib_FOUND TRUE)
