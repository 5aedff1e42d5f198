# Read by every CMake that is started on the host runtime (CMAKE_TOOLCHAIN_FILE), at its project(); it changes no compiler.
#
# Programs link CANN's libraries by their names (acl_rt, nnopbase); what is in these is in libascendcl.so and libopapi.so here, to
# which GNU ld follows with one option.
#
# Presets, caches and defaults of operator projects name the CANN of their author's machine, /usr/local/Ascend/…; on the host runtime
# that is the host toolkit. And projects that msOpGen made carry CMake functions of their own around CANN's opbuild and
# device compiler, under names that are the same in every one: once a project has included them, the host toolkit's take
# their places.
#
# What targets say of another machine, its CANN and its torch, is adapted when all are there (adapted_targets.cmake).
get_filename_component(_ascend_graph_toolkit "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(DEFINED ASCEND_CANN_PACKAGE_PATH AND NOT "${ASCEND_CANN_PACKAGE_PATH}" STREQUAL "${_ascend_graph_toolkit}")
    message(STATUS "ascend_graph: the host toolkit stands for ASCEND_CANN_PACKAGE_PATH=${ASCEND_CANN_PACKAGE_PATH}")
    set(ASCEND_CANN_PACKAGE_PATH "${_ascend_graph_toolkit}" CACHE PATH "" FORCE)
elseif(NOT DEFINED ASCEND_CANN_PACKAGE_PATH)
    # A default of the CMakeLists.txt, set(ASCEND_CANN_PACKAGE_PATH /usr/local/Ascend/… CACHE …), is not taken then.
    set(ASCEND_CANN_PACKAGE_PATH "${_ascend_graph_toolkit}" CACHE PATH "")
endif()

if(NOT CMAKE_EXE_LINKER_FLAGS_INIT MATCHES "copy-dt-needed-entries")
    string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT " -Wl,--copy-dt-needed-entries")
endif()

get_property(_ascend_graph_seen GLOBAL PROPERTY ASCEND_GRAPH_TOOLCHAIN)
if(NOT _ascend_graph_seen)
    set_property(GLOBAL PROPERTY ASCEND_GRAPH_TOOLCHAIN TRUE)
    # CMake sets the variable to the compiler that it finds; what was chosen is known here alone.
    set_property(GLOBAL PROPERTY ASCEND_GRAPH_CXX "$ENV{CXX}")
    # When the project has added all its targets.
    if(NOT CMAKE_VERSION VERSION_LESS 3.19)
        include("${CMAKE_CURRENT_LIST_DIR}/adapted_targets.cmake")
        cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL ascend_graph_adapt_targets "${_ascend_graph_toolkit}")
    endif()
    set(_ascend_graph_is_template FALSE)
    file(GLOB _ascend_graph_own ${CMAKE_SOURCE_DIR}/cmake/*.cmake)
    foreach(_ascend_graph_file IN LISTS _ascend_graph_own)
        file(READ ${_ascend_graph_file} _ascend_graph_text)
        if(_ascend_graph_text MATCHES "function *\\( *opbuild[ )]" AND _ascend_graph_text MATCHES "opbuild/op_build")
            set(_ascend_graph_is_template TRUE)
        endif()
    endforeach()
    unset(_ascend_graph_text)
    if(_ascend_graph_is_template)
        set_property(GLOBAL PROPERTY ASCEND_GRAPH_TEMPLATE ${CMAKE_CURRENT_LIST_DIR}/operator_package/msopgen.cmake)
        # The project's functions are all there when it adds its first directory.
        macro(add_subdirectory directory)
            get_property(_ascend_graph_functions GLOBAL PROPERTY ASCEND_GRAPH_TEMPLATE)
            include(${_ascend_graph_functions})
            if("${directory}" STREQUAL "framework")
                message(STATUS "ascend_graph: framework is left out: models of TensorFlow, Caffe and ONNX are not read on the host")
            else()
                _add_subdirectory(${directory} ${ARGN})
            endif()
        endmacro()
    endif()
endif()
