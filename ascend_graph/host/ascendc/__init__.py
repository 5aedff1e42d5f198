"""Ascend C kernels on the host: the compiler driver and the part of the host toolkit that kernels are built with.

``translate`` turns launches into C++ and finds kernels, ``driver`` is the program ``bisheng``, ``toolkit`` lays both
out with the headers as authors' build files expect them, ``coverage`` tables the API of the headers.
"""
