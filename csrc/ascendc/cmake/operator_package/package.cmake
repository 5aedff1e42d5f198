# What the host toolkit's CMake functions for operator projects have in common, in whichever form a project calls them.
#
# They collect what the project's build files list in a manifest, a line for each fact (ascend_graph/host/projects/build_files.py
# says which), and run Python with it: while CMake configures, for the generated headers, and as a target, for the package.
# A manifest is the property ASCEND_GRAPH_MANIFEST of a target, a text with generator expressions: options that are given to
# a target later reach it.
include_guard(GLOBAL)

# This file lies in <home>/<…>/ascendc_kernel_cmake/operator_package, three or four directories down.
set(_ascend_graph_directory "${CMAKE_CURRENT_LIST_DIR}")
get_filename_component(_ascend_graph_home "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)

# A list: the command that Python code of ascend_graph is run by.
function(ascend_graph_python result)
    if(DEFINED ENV{ASCEND_GRAPH_PYTHON})
        set(python "$ENV{ASCEND_GRAPH_PYTHON}")
    else()
        set(python python3)
    endif()
    # The same compiler while CMake configures and while it builds, so that nothing is compiled twice.
    get_property(chosen GLOBAL PROPERTY ASCEND_GRAPH_CXX)
    if(chosen)
        set(compiler "CXX=${chosen}")
    else()
        set(compiler --unset=CXX)
    endif()
    # -P, by its variable: modules in the directory of the build are not meant.
    set(${result} ${CMAKE_COMMAND} -E env ${compiler} PYTHONSAFEPATH=1 ${python} -m ascend_graph.host.projects.build_files PARENT_SCOPE)
endfunction()

# What stands for the sources of an operator in targets whose library is a part of the package's one.
function(ascend_graph_empty_source result)
    set(source ${CMAKE_BINARY_DIR}/ascend_graph/empty.cpp)
    if(NOT EXISTS ${source})
        file(WRITE ${source} "// The operators are in the package's libcust_opapi.so, which ascend_graph builds.\n")
    endif()
    set(${result} ${source} PARENT_SCOPE)
endfunction()

# Lines of a manifest: a key before each of some values.
function(ascend_graph_lines result key)
    set(text "")
    foreach(value IN LISTS ARGN)
        string(APPEND text "${key}\t${value}\n")
    endforeach()
    set(${result} "${text}" PARENT_SCOPE)
endfunction()

# Lines of a manifest: directories, definitions and options of a target, as they are when build files are written.
function(ascend_graph_target_lines result target)
    set(text "")
    foreach(pair "include INCLUDE_DIRECTORIES" "definition COMPILE_DEFINITIONS" "option COMPILE_OPTIONS")
        string(REPLACE " " ";" pair "${pair}")
        list(GET pair 0 key)
        list(GET pair 1 property)
        set(values "$<TARGET_PROPERTY:${target},${property}>")
        string(APPEND text "$<$<BOOL:${values}>:${key}\t$<JOIN:${values},\n${key}\t>\n>")
    endforeach()
    set(${result} "${text}" PARENT_SCOPE)
endfunction()

# Absolute paths of sources; refuses one that is not there, but for generated ones.
function(ascend_graph_absolute result)
    set(paths "")
    foreach(source IN LISTS ARGN)
        get_filename_component(path "${source}" ABSOLUTE)
        get_source_file_property(generated "${path}" GENERATED)
        if(NOT EXISTS "${path}" AND NOT generated)
            message(FATAL_ERROR "ascend_graph: the source ${path} does not exist")
        endif()
        list(APPEND paths "${path}")
    endforeach()
    set(${result} "${paths}" PARENT_SCOPE)
endfunction()

# Run opbuild's part: headers and sources from the definitions, at once, as build files list what it makes.
function(ascend_graph_describe directory)  # more arguments: lines of a manifest
    if(ENABLE_CROSS_COMPILE)
        message(FATAL_ERROR "ascend_graph: the host builds for itself alone: set ENABLE_CROSS_COMPILE to False")
    endif()
    string(JOIN "" text ${ARGN})
    string(JOIN "," units ${ASCEND_COMPUTE_UNIT})
    set(manifest ${CMAKE_BINARY_DIR}/ascend_graph/definitions.txt)
    file(WRITE ${manifest} "project\t${CMAKE_SOURCE_DIR}\nunits\t${units}\n${text}")
    ascend_graph_python(python)
    execute_process(COMMAND ${python} describe ${manifest} ${directory} RESULT_VARIABLE status OUTPUT_VARIABLE operators)
    if(NOT status EQUAL 0)
        message(FATAL_ERROR "ascend_graph: the definitions of ${CMAKE_SOURCE_DIR} do not build, for the reason above")
    endif()
    string(STRIP "${operators}" operators)
    string(REPLACE "\n" ", " operators "${operators}")
    message(STATUS "ascend_graph, in CANN's place: ${operators}")
endfunction()

# A target that builds a package in <directory> from its manifest, which it begins.
function(ascend_graph_package target directory)
    string(JOIN "," units ${ASCEND_COMPUTE_UNIT})
    # Options of targets may differ from language to language; those of C++ are meant.
    set(manifest ${CMAKE_BINARY_DIR}/ascend_graph/${target}-)
    ascend_graph_python(python)
    add_custom_target(${target} ALL
        COMMAND ${python} build ${manifest}CXX.txt ${directory}
        BYPRODUCTS ${directory}/op_api/lib/libcust_opapi.so
        COMMENT "Operator package for the host runtime: ${directory}"
        VERBATIM)
    set_target_properties(${target} PROPERTIES ASCEND_GRAPH_MANIFEST "project\t${CMAKE_SOURCE_DIR}\nunits\t${units}\n")
    file(GENERATE OUTPUT ${manifest}$<COMPILE_LANGUAGE>.txt CONTENT "$<GENEX_EVAL:$<TARGET_PROPERTY:${target},ASCEND_GRAPH_MANIFEST>>")
    # As CANN's build has it: kernels are built by this target, before the one that packs.
    if(NOT TARGET binary)
        add_custom_target(binary)
    endif()
    add_dependencies(binary ${target})
endfunction()

# Lines are added to what is collected in a target.
function(ascend_graph_append target)
    string(JOIN "" text ${ARGN})
    set_property(TARGET ${target} APPEND_STRING PROPERTY ASCEND_GRAPH_MANIFEST "${text}")
endfunction()

# <distribution>_<processor>, as the installer's name has it.
function(ascend_graph_system result)
    set(distribution linux)
    if(EXISTS /etc/os-release)
        file(STRINGS /etc/os-release line REGEX "^ID=" LIMIT_COUNT 1)
        string(REGEX REPLACE "^ID=|\"" "" distribution "${line}")
    endif()
    set(${result} ${distribution}_${CMAKE_SYSTEM_PROCESSOR} PARENT_SCOPE)
endfunction()
