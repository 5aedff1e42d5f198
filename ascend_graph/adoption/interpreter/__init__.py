"""Interpreter of kernels and meta functions, in C++ and Python, that follows sizes, dtypes and arguments alone."""
