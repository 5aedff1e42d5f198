"""Names that torch schemas and GE prototypes use for one thing, and how names are compared.

The one table of synonyms. A pair found here is used only where it is the only possible one on both sides.
"""

from __future__ import annotations

#: Each row is one meaning; names are in normalized form (see :func:`normalize`).
_MEANINGS = (
    ("self", "input", "x"),
    ("dim", "axis"),
    ("dims", "axes"),
    ("eps", "epsilon"),
    ("keepdim", "keepdims"),
    ("stride", "strides"),
    ("padding", "pads", "pad"),
    ("dilation", "dilations"),
    ("groups", "group"),
    ("index", "indices"),
    (
        "gradoutput",
        "gradoutputs",
        "grad",
        "gradients",
        "dy",
        "dout",
        "grady",
        "ygrad",
        "gradout",
        "outgrad",
        "outputgrad",
    ),
    ("outputdtype", "outdtype", "dtype", "dsttype", "dstdtype", "ydtype"),
    ("scale", "scales"),
    ("hcom", "group"),
)

#: Endings that prototypes add to a name without changing what it means.
_ENDINGS = ("ref", "optional", "in")

#: What a schema calls its first tensor, whatever the prototype calls its first input.
FIRST_TENSOR_NAMES = frozenset({"self", "input", "x", "inputs"})


def normalize(name: str) -> str:
    """A name without case and underscores.

    >>> normalize("antiquantOffset"), normalize("antiquant_offset_")
    ('antiquantoffset', 'antiquantoffset')
    """
    return name.replace("_", "").lower()


def are_synonyms(a: str, b: str) -> bool:
    """Whether two names are known to mean the same.

    >>> are_synonyms("dim", "axis"), are_synonyms("k_cache", "k_cache_ref"), are_synonyms("x", "axis")
    (True, True, False)
    """
    first, second = normalize(a), normalize(b)
    if any(first in row and second in row for row in _MEANINGS):
        return True
    return any(first == second + ending or second == first + ending for ending in _ENDINGS)
