# As in projects that msOpGen makes: functions of the project around tools of CANN.
function(opbuild)
    cmake_parse_arguments(given "" "OUT_DIR" "OPS_SRC" ${ARGN})
    execute_process(
        COMMAND ${ASCEND_CANN_PACKAGE_PATH}/toolkit/tools/opbuild/op_build ${given_OUT_DIR}/all.so ${given_OUT_DIR}
        RESULT_VARIABLE status)
    if(NOT status EQUAL 0)
        message(FATAL_ERROR "opbuild failed")
    endif()
endfunction()

function(add_ops_compile_options op_type)
    message(FATAL_ERROR "for a device")
endfunction()

function(add_kernels_compile)
    message(FATAL_ERROR "for a device")
endfunction()
