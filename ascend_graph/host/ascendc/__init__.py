"""Ascend C kernels on the host: the compiler driver that builds them.

``driver`` is the program ``bisheng``, ``command`` parses its command lines, ``translate`` rewrites kernels and launches
as C++, ``cores`` joins the objects of cube and vector cores, ``cpu_debug`` is the compiler launcher for CPU debugging.
"""
