"""Candidates for outputs within a domain: templates of shapes, terms for their open sizes, and dtypes.

A *template* (``[*s, ?@dim]``) leaves sizes open; :mod:`ascend_graph.inference.solver` solves for them over a finite
vocabulary of terms (dimensions, attrs, constants, products, halves, windows of convolutions, …).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from ascend_graph.inference.domains import Domain, OperatorSignature


def templates(domain: Domain, signature: OperatorSignature) -> Iterator[tuple[str, int]]:
    """Yield output shapes with numbered open sizes, such as ``[*s, {0}@dim]``, and the number of open sizes."""
    groups = [g for g in (*(f"*{name}" for name in domain.groups), "...") if _has(domain.inputs, g)]
    axes = [name for name, role in domain.roles.items() if role == "axis"]
    yield "", 0
    for group in groups:
        yield group, 0
    for name, role in domain.roles.items():
        if role in ("axes", "axis") and "*s" in groups:
            if role == "axes":
                yield f"*s, *r@{name}", 0
                yield f"*s, *ones(r)@{name}", 0
                yield "*s, *r", 0
                yield "*ones(s), *ones(r)", 0
            yield "*ones(s)", 0
        if role == "permutation":
            yield "*s", 0
        if role == "cut" and "*s" in groups:
            yield f"*s[:{name}], *ones(s[{name}:])", 0
            yield f"*s[:{name}]", 0
            yield f"*s[{name}:]", 0
            yield f"*s[:{name}], {{0}}", 1
        if role in ("sizes", "expand"):
            yield f"*{name}", 0
            for group in groups:
                yield f"{group}, *{name}", 0
                yield f"*{name}, {group}", 0
        if role == "reshape" and "*s" in groups:
            yield f"*reshape(s, {name})", 0
        if role == "inserts":
            yield f"*s, *ones({name})@{name}", 0
        if role in ("axis", "insert"):
            for group in groups:
                yield f"{group}, {{0}}@{name}", 1
                yield f"{group}, {{0}}@{name}, {{1}}@-1", 2
    for a, b in itertools.permutations(axes, 2):
        yield f"*s, {{0}}@{a}, {{1}}@{b}", 2
    for a, b in itertools.permutations(groups, 2):
        yield f"{a}, {b}", 0
        if b != "...":
            yield f"{a}, *ones({b[1:]})", 0
            yield f"{a}, *ones({b[1:]}), 1", 0
    for group in groups:
        yield f"{group}, {{0}}", 1
        yield f"{{0}}, {group}", 1
        yield f"{group}, {{0}}, {{1}}", 2
        yield f"{{0}}, {{1}}, {group}", 2
        yield f"{group}, {{0}}, {{1}}, {{2}}", 3
        if group != "...":
            yield f"{group}, {group}", 0
            yield f"{{0}}, *ones({group[1:]})", 1
            yield f"{{0}}, {{1}}, *ones({group[1:]})", 2
            yield f"*ones({group[1:]}), {{0}}", 1
    for a, b in itertools.permutations(groups, 2):
        yield f"{a}, {b}, {{0}}", 1
        yield f"{a}, {b}, {{0}}, {{1}}", 2
    for count in range(1, 6):
        yield ", ".join(f"{{{n}}}" for n in range(count)), count


def _has(inputs: str, group: str) -> bool:
    return any(f"{group}{end}" in inputs for end in (",", "]")) and not (group != "..." and f"{group}[" in inputs)


def _any_rank(domain: Domain, tensor: str) -> bool:
    """Return whether a domain leaves the rank of a tensor open."""
    _, _, pattern = domain.inputs.partition(f"{tensor}[")
    return any(mark in pattern.partition("]")[0] for mark in ("*", "..."))


def basics(domain: Domain, signature: OperatorSignature) -> list[str]:
    """Return the leaves of arithmetic: single dimensions, attrs, numbers in lists, and products of groups."""
    lists = [a.name for a in signature.attrs if a.kind == "int[]"]
    ints = [a.name for a in signature.attrs if a.kind == "int" and a.name not in domain.roles]
    groups = [f"prod({group})" for group in domain.groups]
    smaller = [f"min({dim}, {name})" for dim in domain.dims for name in ints if len(ints) < 3]
    return list(
        dict.fromkeys([*domain.dims, *ints, *smaller, *(f"{name}[{n}]" for name in lists for n in (0, 1)), *groups])
    )


def vocabulary(domain: Domain, signature: OperatorSignature, *, element: str | None = None) -> list[str]:
    """Return the terms for an open size, simple ones first; ``element`` is the index of a list output."""
    attrs = {a.name for a in signature.attrs}
    dims = [d for d in domain.dims if d not in attrs]
    vectors = [v for v in "mn" if f"{v}[i]" in domain.inputs]
    groups = domain.groups
    ints = [a.name for a in signature.attrs if a.kind == "int" and a.name not in domain.roles]
    lists = [
        a.name for a in signature.attrs if a.kind == "int[]" and domain.roles.get(a.name) not in ("axes", "permutation")
    ]
    numbers = ints + [f"{name}[{n}]" for name in lists for n in (0, 1, 2)]
    terms = [*dims, *(f"prod({g})" for g in groups)]
    if "..." in domain.inputs:
        terms.append("prod(...)")
    cuts = [name for name, role in domain.roles.items() if role == "cut"]
    terms += [part for name in cuts for part in (f"prod(s[:{name}])", f"prod(s[{name}:])")]
    tensors = [t.name for t in signature.required]
    terms += [f"numel({t.name})" for t in signature.required if not t.is_list]
    # The rank of a tensor without a group is a number, and reads better as one.
    terms += [f"rank({t.name})" for t in signature.required if not t.is_list and _any_rank(domain, t.name)]
    for name in tensors:
        if f"{name}[i]" in domain.inputs:
            terms += [f"len({name})", f"2 * len({name})"]
    for vector in vectors:
        terms += [f"sum({vector})", f"prod({vector})", f"max({vector})", *([f"{vector}[{element}]"] if element else [])]
    terms += [f"len({name})" for name in lists]
    terms += [str(n) for n in range(9)]
    terms += numbers
    terms += [f"{name}[{n}]" for name in lists for n in (-1, -2)]
    terms += [f"{name}[{element}]" for name in lists if element]
    for d in (*dims, *(f"prod({g})" for g in groups)):
        terms += [f"{d} + 1", f"{d} - 1", f"2 * {d}", f"{d} // 2", f"{d} // 2 + 1", f"{d} * ({d} - 1) // 2"]
        terms += [
            f"{d} * {d}",
            f"{d} * ({d} + 1) // 2",
            f"2 * ({d} - 1)",
            f"4 * {d}",
            f"{d} // 4",
            f"3 * {d}",
            f"{d} // 3",
        ]
        for n in numbers:
            terms += [f"{d} + {n}", f"{d} - {n}", f"{d} * {n}", f"{d} // {n}", f"ceildiv({d}, {n})", f"min({d}, {n})"]
            if element is None:
                terms.append(f"max(ceildiv({d}, {n}), 1)")
            terms.append(f"{d} + 2 * {n}")
            terms += [f"{d} * {n} * {n}", f"{d} // ({n} * {n})", f"{d} - {n} + 1"]
            if element:
                terms += [f"min({n}, {d} - {element} * {n})"]
                terms += [f"min(ceildiv({d}, {n}), {d} - {element} * ceildiv({d}, {n}))"]
        for a, b in itertools.combinations(numbers, 2):
            terms += [f"{d} + {a} + {b}", f"({d} - {a}) // {b} + 1"]
            terms += [f"({d} - {b}) // {a} + 1"]
    for a, b in itertools.combinations(dims, 2):
        terms += [f"{a} * {b}", f"{a} + {b}", f"min({a}, {b})", f"max({a}, {b})", f"{a} + {b} - 1", f"{a} - {b} + 1"]
    terms += [f"{a} * {b}" for a, b in itertools.combinations(numbers, 2)]
    terms += _windows(dims, lists)
    return list(dict.fromkeys(terms))


def _windows(dims: Sequence[str], lists: Sequence[str]) -> list[str]:
    """Return output sizes of convolutions and pooling: ``(h + 2p - d(k - 1) - 1) // s + 1``, attrs in any roles."""
    found = []
    for d, axis in (("h", 0), ("w", 1), ("n", 0)):
        if d not in dims:
            continue
        for kernel, stride, padding in itertools.permutations(lists, 3):
            for dilation in (None, *(name for name in lists if name not in (kernel, stride, padding))):
                reach = f"({kernel}[{axis}] - 1)" + (f" * {dilation}[{axis}]" if dilation else "")
                found.append(f"({d} + 2 * {padding}[{axis}] - {reach} - 1) // {stride}[{axis}] + 1")
        kernel = "pq"[axis]
        if kernel in dims and d in "hw":  # the kernel is a tensor
            for stride, padding, dilation in itertools.permutations(lists, 3):
                reach = f"({kernel} - 1) * {dilation}[{axis}]"
                found.append(f"({d} + 2 * {padding}[{axis}] - {reach} - 1) // {stride}[{axis}] + 1")
    return found


def dtype_candidates(signature: OperatorSignature) -> Iterable[str]:
    """Yield dtype rules for an output, simple ones first."""
    tensors = [t.name for t in signature.required]
    numbers = [a.name for a in signature.attrs if a.kind == "number"]
    yield from tensors
    if len(tensors) > 1:
        yield f"promote({', '.join(tensors)})"
    # What says a dtype by name says no more than was seen; the floating dtype of integers depends on a setting of torch's.
    yield from (
        "bool",
        "int64",
        "int32",
        "float32",
        "float64",
        "uint8",
        "int8",
        "int16",
        "float16",
        "bfloat16",
        "complex64",
        "float8_e8m0fnu",
        "float8_e5m2",
        "float8_e4m3fn",
    )
    for count in range(1, len(numbers) + 1):
        for chosen in itertools.combinations(numbers, count):
            yield f"promote({', '.join([*tensors, *chosen])})"
            yield f"floating({', '.join([*tensors, *chosen])})"
    for count in range(2, len(tensors)):
        for chosen in itertools.combinations(tensors, count):
            yield f"promote({', '.join(chosen)})"
    for tensor in tensors:
        yield f"floating({tensor})"
        yield f"integral_sum({tensor})"
        yield f"real({tensor})"
        yield f"real(floating({tensor}))"
        yield f"uint8 if dtype({tensor}) == uint8 else bool"
    if len(tensors) > 1:
        yield f"floating({', '.join(tensors)})"
