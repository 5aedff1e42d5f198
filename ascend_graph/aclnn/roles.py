"""Directions and optionality of aclnn parameters, inferred from types, names and comments.

Headers are incomplete: outputs are often documented as ``[in]``, generated functions have const outputs, and some
inputs lack const. If a prototype declares the operator, the binding uses that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ascend_graph.aclnn.model import AclnnParameter, Direction, ValueKind

_OPTIONAL = re.compile(r"(?:[a-z0-9_]Optional|_optional)(?:Ref|Out)?\d*\Z")
_REF = re.compile(r"(?:[a-z0-9]Ref|_ref|\Aref)(?:Optional)?\Z")
_OUT = re.compile(r"(?:out|Out|\w*[A-Za-z0-9]Out|\w+_out)\d*(?:Optional)?\Z")
_GRADIENT = re.compile(r"\A(?:grad|d)(?=[A-Z_])|\Agrad")
_DOCUMENTED = re.compile(r"[@\\]param\s*\[\s*(in|out|in\s*,?\s*out|out\s*,\s*in)\s*\]\s*(\w+)", re.IGNORECASE)
_GENERATED = re.compile(r"^[ \t*]*(\w+)[ \t]*:[ \t]*optional\b", re.MULTILINE)
_TENSORS = (ValueKind.TENSOR, ValueKind.TENSOR_LIST)


def documented(comment: str) -> dict[str, Direction]:
    """Return the direction that a comment gives for each documented parameter.

    >>> documented("@param [in] x: read.  @param[in, out] cacheRef  @param [out] y")["cacheRef"]
    <Direction.INOUT: 'inout'>
    """
    found = {}
    for said, name in _DOCUMENTED.findall(comment):
        words = {*re.findall("in|out", said.lower())}
        found[name] = Direction.INOUT if len(words) == 2 else Direction(words.pop())
    return found


def documented_optional(comment: str) -> frozenset[str]:
    """Return the parameters that msOpGen's comment marks as ``name : optional``."""
    return frozenset(_GENERATED.findall(comment))


def is_optional(name: str) -> bool:
    """Return whether the name marks a parameter that may be null.

    >>> [is_optional(name) for name in ("biasOptional", "bias_optional", "cacheOptionalRef", "options")]
    [True, True, True, False]
    """
    return _OPTIONAL.search(name) is not None


def is_output_name(name: str) -> bool:
    """Return whether the name marks an output.

    >>> [is_output_name(name) for name in ("out", "yOut", "values_out", "out1", "layout", "gradOutput", "output")]
    [True, True, True, True, False, False, False]
    """
    return _OUT.match(name) is not None


def is_reference_name(name: str) -> bool:
    """Return whether the name marks a parameter that is read and written.

    >>> [is_reference_name(name) for name in ("selfRef", "varRef", "href", "cacheRefOptional")]
    [True, True, False, True]
    """
    return _REF.search(name) is not None


def directions(function: str, parameters: Sequence[AclnnParameter], comment: str) -> list[Direction]:
    """Return the direction of each parameter of a function, in order."""
    said = documented(comment)
    found = [_by_type_and_name(parameter) for parameter in parameters]
    tensors = [n for n, parameter in enumerate(parameters) if parameter.value in _TENSORS]
    in_place = function.startswith("aclnnInplace")
    if in_place and tensors:
        found[tensors[0]] = Direction.INOUT
    undecided = [n for n in tensors if found[n] is None]
    writable = [n for n in undecided if not parameters[n].type.const]
    if any(not parameters[n].type.const and found[n] is not Direction.INOUT for n in tensors):
        # The author tells what is written from what is read.
        last_read = max((n for n in undecided if parameters[n].type.const), default=-1)
        for n in undecided:
            # After a writable tensor come values and then outputs again, as in BatchNorm: it is a running statistic.
            before_values = any(
                parameters[m].value not in _TENSORS and any(k > m for k in tensors)
                for m in range(n + 1, len(parameters))
            )
            if n not in writable or in_place:
                found[n] = Direction.IN
            elif n < last_read:
                found[n] = Direction.IN if said.get(parameters[n].name) is Direction.IN else Direction.INOUT
            else:
                found[n] = Direction.INOUT if before_values else Direction.OUT
    else:
        written = any(direction in (Direction.OUT, Direction.INOUT) for direction in (*found, *said.values()))
        for n in _generated_outputs(parameters, written):
            found[n] = found[n] or Direction.OUT
    for n, parameter in enumerate(parameters):
        if said.get(parameter.name, Direction.IN) is not Direction.IN and found[n] is not Direction.INOUT:
            found[n] = said[parameter.name]
    return [direction or Direction.IN for direction in found]


def _by_type_and_name(parameter: AclnnParameter) -> Direction | None:
    """Return the direction that a parameter's type and name give, or None for an undecided tensor."""
    if parameter.value not in _TENSORS:
        return Direction.OUT if parameter.value is ValueKind.HOST_OUTPUT else Direction.IN
    if is_reference_name(parameter.name):
        return Direction.INOUT
    if not parameter.type.const and is_output_name(parameter.name):
        return Direction.OUT
    return None


def _generated_outputs(parameters: Sequence[AclnnParameter], written: bool) -> list[int]:
    """Return the positions of the outputs if every tensor is const.

    The outputs are the last tensors, from the first of those with an output's name on.

    Without such a name the output is the last tensor, ``dx`` or ``z``, unless something else is ``written``. A tensor
    with the name of an optional input is not an output: an output that may be null is ``yOutOptional``.
    """
    end = begin = len(parameters)
    while begin and parameters[begin - 1].value in _TENSORS:
        begin -= 1
    named = [
        n for n in range(begin, end) if is_output_name(parameters[n].name) and not _GRADIENT.match(parameters[n].name)
    ]
    first = max(begin, end - (not written))
    if named:
        first = named[-1]
        while first - 1 in named:
            first -= 1
    return [n for n in range(first, end) if n in named or not is_optional(parameters[n].name)]
