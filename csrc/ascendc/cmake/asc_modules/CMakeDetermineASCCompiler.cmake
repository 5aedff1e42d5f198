# The compiler of the language ASC is the toolkit's driver.
find_program(CMAKE_ASC_COMPILER NAMES bisheng HINTS "${CMAKE_CURRENT_LIST_DIR}/../../../../bin" $ENV{ASCEND_HOME_PATH}/bin
             NO_DEFAULT_PATH)
if(NOT CMAKE_ASC_COMPILER)
    message(FATAL_ERROR "ASC: no bisheng in ${CMAKE_CURRENT_LIST_DIR}/../../../../bin; set ASCEND_HOME_PATH to the host toolkit")
endif()
mark_as_advanced(CMAKE_ASC_COMPILER)
set(CMAKE_ASC_COMPILER_ENV_VAR ASC)
configure_file(${CMAKE_CURRENT_LIST_DIR}/CMakeASCCompiler.cmake.in ${CMAKE_PLATFORM_INFO_DIR}/CMakeASCCompiler.cmake @ONLY)
