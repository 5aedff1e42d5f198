# Kernel libraries for kernel launch projects: ascendc_library() and its companions, building for the host.
#
#   include(${ASCEND_CANN_PACKAGE_PATH}/compiler/tikcpp/ascendc_kernel_cmake/ascendc.cmake)
#   ascendc_library(kernels STATIC add_custom.cpp)
#   ascendc_include_directories(kernels PRIVATE include)
#
# A target that links `kernels` includes aclrtlaunch_<kernel>.h and launches with ACLRT_LAUNCH_KERNEL(<kernel>)(…).
include_guard(GLOBAL)

# This file lies in <home>/compiler/tikcpp/ascendc_kernel_cmake or <home>/tools/tikcpp/ascendc_kernel_cmake.
get_filename_component(_ASCENDC_HOME "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(_ASCENDC_COMPILER ${CMAKE_COMMAND} -E env ASCENDC_HOST_HOME=${_ASCENDC_HOME} ${_ASCENDC_HOME}/bin/bisheng)

# What programs link in addition to a library of kernels: ACL and its headers.
add_library(host_intf_pub INTERFACE)
target_include_directories(host_intf_pub SYSTEM INTERFACE ${_ASCENDC_HOME}/include)
target_link_directories(host_intf_pub INTERFACE ${_ASCENDC_HOME}/lib64)
target_link_libraries(host_intf_pub INTERFACE ascendcl)

# ascendc_library(<name> SHARED|STATIC|OBJECT <kernel source>...)
function(ascendc_library name type)
    string(TOUPPER ${type} type)
    if(NOT type MATCHES "^(SHARED|STATIC|OBJECT)$")
        message(FATAL_ERROR "ascendc_library(${name}): type ${type}; valid: SHARED, STATIC, OBJECT")
    endif()
    if(NOT ARGN)
        message(FATAL_ERROR "ascendc_library(${name}): no kernel sources")
    endif()
    # An object library cannot be made of objects alone; as a static one it links the same way.
    if(type STREQUAL "OBJECT")
        set(type STATIC)
    endif()

    set(headers ${CMAKE_BINARY_DIR}/include/${name})
    file(MAKE_DIRECTORY ${headers})
    # Evaluated when the build files are written, so ascendc_compile_definitions() may follow.
    set(definitions $<TARGET_PROPERTY:${name},COMPILE_DEFINITIONS>)
    set(directories $<TARGET_PROPERTY:${name},INCLUDE_DIRECTORIES>)
    set(options $<TARGET_PROPERTY:${name},ASCENDC_COMPILE_OPTIONS>)
    set(objects "")
    foreach(source IN LISTS ARGN)
        get_filename_component(source ${source} ABSOLUTE)
        string(MD5 id ${source})
        string(SUBSTRING ${id} 0 8 id)
        get_filename_component(stem ${source} NAME_WE)
        set(object ${CMAKE_CURRENT_BINARY_DIR}/ascendc/${name}/${stem}_${id}.o)
        add_custom_command(
            OUTPUT ${object}
            COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/ascendc/${name}
            COMMAND ${_ASCENDC_COMPILER} -x asc --launch-stubs=${headers} -O2 -fPIC -std=c++17
                    "$<$<BOOL:${definitions}>:-D$<JOIN:${definitions},;-D>>"
                    "$<$<BOOL:${directories}>:-I$<JOIN:${directories},;-I>>" "${options}"
                    -MD -MF ${object}.d -MT ${object} -c ${source} -o ${object}
            DEPENDS ${source}
            DEPFILE ${object}.d
            COMMENT "Ascend C for the host: ${stem}"
            COMMAND_EXPAND_LISTS
            VERBATIM)
        list(APPEND objects ${object})
    endforeach()
    set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)

    add_library(${name} ${type} ${objects})
    set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX ASCENDC_LIBRARY TRUE)
    # The headers come with the compiler driver; what links the library needs the launch headers and ACL.
    target_include_directories(${name} INTERFACE ${headers} ${_ASCENDC_HOME}/include)
    target_link_directories(${name} PUBLIC ${_ASCENDC_HOME}/lib64)
    target_link_libraries(${name} PUBLIC ascendc_runtime ascendcl)
    target_link_options(${name} INTERFACE -Wl,-rpath,${_ASCENDC_HOME}/lib64)
    if(type STREQUAL "SHARED")
        target_link_options(${name} PRIVATE -Wl,-rpath,${_ASCENDC_HOME}/lib64)
    endif()
    install(TARGETS ${name} LIBRARY DESTINATION lib ARCHIVE DESTINATION lib OPTIONAL)
endfunction()

function(ascendc_include_directories name scope)
    set(absolute "")
    foreach(directory IN LISTS ARGN)
        get_filename_component(directory ${directory} ABSOLUTE)
        list(APPEND absolute ${directory})
    endforeach()
    target_include_directories(${name} ${scope} ${absolute})
endfunction()

function(ascendc_compile_definitions name scope)
    if(ARGN)
        target_compile_definitions(${name} ${scope} ${ARGN})
    endif()
endfunction()

# Options for the device compiler alone are left out by the compiler driver.
function(ascendc_compile_options name scope)
    get_target_property(library ${name} ASCENDC_LIBRARY)
    if(library)
        set_property(TARGET ${name} APPEND PROPERTY ASCENDC_COMPILE_OPTIONS ${ARGN})
    else()
        target_compile_options(${name} ${scope} $<$<COMPILE_LANGUAGE:ASC>:${ARGN}>)
    endif()
endfunction()

# A binary for the device alone cannot be made here; the same kernels as an ordinary library can.
function(ascendc_fatbin_library name)
    message(FATAL_ERROR "ascendc_fatbin_library(${name}): device binaries are not built on the host; use ascendc_library()")
endfunction()
