# cmake -DNM=… -DLIBRARY=… -DOUTPUT=… -P this: C++ that defines the names of a shared library's C functions, for filters of it.
execute_process(COMMAND ${NM} -D --defined-only ${LIBRARY} OUTPUT_VARIABLE table COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL " T (acl|rt|Msprof)[A-Za-z0-9]*\n" functions "${table}")
set(text "// Names alone: a loader takes the functions from the library that this one filters.\n#pragma GCC visibility push(default)\nextern \"C\" {\n")
foreach(function ${functions})
  string(REGEX REPLACE "^ T ([A-Za-z0-9]+)\n$" "void \\1() {}\n" definition "${function}")
  string(APPEND text "${definition}")
endforeach()
file(WRITE ${OUTPUT} "${text}}\n")
