# The other directories of an installed CANN toolkit where build files look for headers and libraries: those of the processor
# (x86_64-linux), of its components (runtime, compiler), and of earlier releases (acllib, atc, fwkacllib).
#
# A wheel has no symbolic links. Each header is one line that includes the real one, so that a file is read once whichever
# directory names it; each library is a linker script, called lib<name>.a as the dynamic loader does not look for these.
set(_layout ${CMAKE_CURRENT_BINARY_DIR}/layout)
file(REMOVE_RECURSE ${_layout})
set(_machine ${CMAKE_SYSTEM_PROCESSOR}-linux)

file(GLOB_RECURSE _headers RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/csrc/host/include
    CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/csrc/host/include/*.h)
foreach(place ${_machine} runtime compiler acllib atc fwkacllib)
    foreach(header IN LISTS _headers)
        string(REGEX REPLACE "[^/]+/" "../" up "${place}/include/${header}")
        string(REGEX REPLACE "[^/]+$" "" up "${up}")
        file(WRITE ${_layout}/${place}/include/${header} "#include \"${up}include/${header}\"\n")
    endforeach()
endforeach()

get_property(_libraries GLOBAL PROPERTY ASCEND_GRAPH_HOST_LIBRARIES)
foreach(place ${_machine}/lib64 ${_machine}/devlib devlib runtime/lib64 runtime/lib64/stub compiler/lib64 acllib/lib64
        acllib/lib64/stub atc/lib64 atc/lib64/stub fwkacllib/lib64 fwkacllib/lib64/stub)
    string(REGEX REPLACE "[^/]+" ".." up "${place}")
    foreach(library IN LISTS _libraries)
        file(WRITE ${_layout}/${place}/lib${library}.a "INPUT(${up}/lib64/lib${library}.so)\n")
    endforeach()
endforeach()

# The descriptions of processors that CANN's own programs and build files read.
foreach(place compiler/data ${_machine}/data)
    install(DIRECTORY ${generated}/platform_config DESTINATION ${toolkit}/${place})
endforeach()

install(DIRECTORY ${_layout}/ DESTINATION ${toolkit})
