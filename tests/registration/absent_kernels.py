"""Python kernels of the tests of absent outputs: each is copied into the package that is built."""

import torch


def halves(x, bias=None, *, want=True):
    return x / 2 if bias is None else x / 2 + bias, x * 2 if want else None


def only(x, *, want=True):
    return x + 1 if want else None


def parts(x, *, count=2):
    return [x + n for n in range(count)]


def grown(acc, x, *, want=True):
    acc += x
    return None, x * 2 if want else None


def stubborn(x, *, returned="both"):
    """Return other outputs than the relation says."""
    return {
        "both": (x, x * 2),
        "first": (x, None),
        "second": (None, x * 2),
        "list": (x, [x]),
        "number": (x, 3),
        "shape": (x, torch.cat([x, x])),
    }[returned]


def chunks(x, *, size):
    return [part.clone() for part in x.split(size)]


def cast(x, *, dst_type=1):
    return x.to({0: torch.float32, 1: torch.float16}[dst_type])
