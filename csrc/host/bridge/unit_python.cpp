// The sources that call Python, compiled as one.
#include "collectives.cpp"
#include "errors.cpp"
#include "python.cpp"
