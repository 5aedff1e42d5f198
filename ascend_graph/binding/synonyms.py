"""Synonyms of torch schemas and GE prototypes, and the comparison of names.

This is the only table of synonyms. A pair of it counts only if it is the only possible one on both sides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

#: Rows of names with one meaning, in normalized form (see :func:`normalize`).
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

#: Endings that prototypes add to a name without changing its meaning.
ENDINGS = ("ref", "optional", "opt", "in")
#: Endings that the headers of aclnn functions add.
HEADER_ENDINGS = ("ref", "optional", "out")

#: Names of the first tensor in schemas, whatever the prototype calls its first input.
FIRST_TENSOR_NAMES = frozenset({"self", "input", "x", "inputs"})


def normalize(name: str) -> str:
    """Return a name without case and underscores.

    >>> normalize("antiquantOffset"), normalize("antiquant_offset_")
    ('antiquantoffset', 'antiquantoffset')
    """
    return name.replace("_", "").lower()


def are_synonyms(a: str, b: str) -> bool:
    """Return whether two names are known to mean the same.

    >>> are_synonyms("dim", "axis"), are_synonyms("k_cache", "k_cache_ref"), are_synonyms("x", "axis")
    (True, True, False)
    """
    first, second = normalize(a), normalize(b)
    if any(first in row and second in row for row in _MEANINGS):
        return True
    return any(first == second + ending or second == first + ending for ending in ENDINGS)


def are_known_synonyms(a: str, b: str) -> bool:
    """Return whether the table has two names in one row."""
    first, second = normalize(a), normalize(b)
    return any(first in row and second in row for row in _MEANINGS)


def stem(name: str, endings: Sequence[str] = ENDINGS) -> str:
    """Return a name without case, underscores, and the endings that it has as words; a number after them stays.

    >>> [stem(name) for name in ("k_cache_ref", "biasOptional", "xIn", "margin", "ref")]
    ['kcache', 'bias', 'x', 'margin', 'ref']
    >>> [stem(name, HEADER_ENDINGS) for name in ("cacheRefOptional", "yOut", "values_out2", "out", "layout", "cout")]
    ['cache', 'y', 'values2', 'out', 'layout', 'cout']
    """
    words_ = "|".join(endings)
    ending = re.compile(
        rf"(?:(?<=[a-z0-9])(?:{'|'.join(e.capitalize() for e in endings)})|(?<=\w)_(?i:{words_}))_?(\d*)\Z"
    )
    while (cut := ending.sub(r"\1", name)) != name and normalize(cut):
        name = cut
    return normalize(name)


def differ_in_endings(a: str, b: str, endings: Sequence[str] = ENDINGS) -> bool:
    """Return whether two names differ at most in case, underscores and endings.

    >>> differ_in_endings("k_cache", "kCacheRef"), differ_in_endings("x_ref", "xOptional"), differ_in_endings("x", "y")
    (True, True, False)
    """
    first, second = normalize(a), normalize(b)
    if first == second or any(first == second + ending or second == first + ending for ending in endings):
        return True
    return stem(a, endings) == stem(b, endings)


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
#: Last words that describe how a value is passed, not its meaning.
_FILLERS = frozenset({"opt", "optional", "ref", "npu", "flag", "tensor"})
_VOWELS = "aeiou"


def words(name: str) -> tuple[str, ...]:
    """Return the words of a name, without last words that only describe how it is passed.

    >>> words("cuSeqlensQ"), words("cu_seqlens_q_opt"), words("gamma1"), words("blockIDs")
    (('cu', 'seqlens', 'q'), ('cu', 'seqlens', 'q'), ('gamma', '1'), ('block', 'ids'))
    """
    joined = re.sub(r"(?<=[A-Z])s(?![a-z])", "S", name)  # the plural of an abbreviation is not a word
    found = [word.lower() for word in _WORD.findall(joined)]
    while len(found) > 1 and found[-1] in _FILLERS:
        found.pop()
    return tuple(found)


def likely_same(a: str, b: str) -> bool:
    """Return whether two names most likely mean the same.

    Their words must be the same, in any order, or abbreviations or synonyms of each other.

    A word that only one of them has makes them different: a scale and a smooth scale, tokens drafted and tokens read.

    >>> [likely_same(a, b) for a, b in (("conv_state", "convStates"), ("compress_ratio", "cmpRatio"), ("bias_opt", "bias"))]
    [True, True, True]
    >>> [likely_same(a, b) for a, b in (("total_draft_tokens", "total_input_tokens"), ("scale", "smooth_scale"))]
    [False, False]
    """
    first, second = list(words(a)), list(words(b))
    if not first or len(first) != len(second):
        return bool(first or second) and are_synonyms(a, b)
    for word in first:
        # A word that is the same goes before one that is alike.
        found = word if word in second else next((other for other in second if _alike(word, other)), None)
        if found is None:
            return False
        second.remove(found)
    return True


def _alike(a: str, b: str) -> bool:
    """Return whether one word is the plural, an abbreviation, a misspelling or a synonym of the other."""
    short, long = sorted((a, b), key=len)
    if len(short) < 3 or not (short + long).isalpha():
        return False
    if are_synonyms(a, b) or (long.startswith(short) and long[len(short) :] not in "abcdefghijklmnopqrtuvwxyz"):
        return True
    if short[0] != long[0]:
        return False
    consonants = long[0] + "".join(c for c in long[1:] if c not in _VOWELS)
    if all(c not in _VOWELS for c in short[1:]) and _is_within(short, consonants):
        return True
    # One letter left out of a long word.
    return len(short) > 4 and len(long) - len(short) == 1 and _is_within(short, long)


def _is_within(short: str, long: str) -> bool:
    """Return whether all letters of one word occur in another, in order."""
    rest = iter(long)
    return all(letter in rest for letter in short)
