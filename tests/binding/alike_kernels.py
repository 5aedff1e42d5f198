"""Kernels of operators whose inputs or outputs have names that differ in an ending."""


def outputs(x):
    return x + 1, x * 10


def inputs(x_ref, x, x_optional=None):
    return x_ref + 10 * x + (0 if x_optional is None else 100 * x_optional)


def written(x, x_ref):
    x += 10
    x_ref += 20


def half_written(x, x_ref):
    x += x_ref
