"""The language of shape relations: what it means, what it refuses, and that its text round-trips."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascend_graph.shapes import GRAMMAR, RelationError, ShapeError, parse_relation
from ascend_graph.shapes.parsing.tokens import MAX_LENGTH
from ascend_graph.shapes.samples import sample

DOCUMENT = Path(__file__).parents[2] / "docs" / "shapes.md"


def shapes_of(text: str, shapes: dict[str, Any], attrs: dict[str, Any] | None = None) -> Any:
    dtypes = {k: ["float16"] * len(v) if isinstance(v, list) else v and "float16" for k, v in shapes.items()}
    specs = parse_relation(text).infer(shapes, dtypes, attrs or {})
    return [[s for s, _ in spec] if isinstance(spec, list) else spec and spec[0] for spec in specs]


@pytest.mark.parametrize(
    ("text", "shapes", "attrs", "wanted"),
    [
        ("x[m, k], w[k, n] -> y[m, n]", {"x": (2, 3), "w": (3, 5)}, {}, [(2, 5)]),
        ("x[..., m, k], w[..., k, n] -> y[..., m, n]", {"x": (7, 1, 2, 3), "w": (4, 3, 5)}, {}, [(7, 4, 2, 5)]),
        ("x[...], y[...], z[...] -> o[...]", {"x": (4, 5), "y": (3, 1, 1), "z": ()}, {}, [(3, 4, 5)]),
        ("x[...] -> y[prod(...), len(...)]", {"x": (4, 5)}, {}, [(20, 2)]),
        ("x[*s, n] -> y[n, *s], z[]", {"x": (2, 3, 4)}, {}, [(4, 2, 3), ()]),
        ("x[*s, *r], g[*r] -> y[*s], z[*s, *ones(r)]", {"x": (2, 3, 4), "g": (3, 4)}, {}, [(2,), (2, 1, 1)]),
        ("x[*s, *r], a[*s] -> y[*r]", {"x": (2, 3, 4), "a": (2,)}, {}, [(3, 4)]),
        ("x[..., *r], g[*r], b[...] -> y[..., *r]", {"x": (3, 4), "g": (4,), "b": (5, 1)}, {}, [(5, 3, 4)]),
        ("x[*s, *normalized] -> y[*s]", {"x": (2, 3, 4)}, {"normalized": [3, 4]}, [(2,)]),
        ("x[a, *r, b, *s, c], g[*r] -> y[*s, b]", {"x": (2, 3, 4, 5, 6, 7), "g": (3, 4)}, {}, [(6, 5)]),
        ("x[*r, *s, *t], y[*s, *t], z[*t] -> o[*r]", {"x": (2, 3, 4), "y": (3, 4), "z": (4,)}, {}, [(2,)]),
        ("x[*s, *r], a[*s], g[*r] -> y[*r, *s]", {"x": (2, 3, 4), "a": (2, 3), "g": (4,)}, {}, [(4, 2, 3)]),
        ("x[*s, n@dim] -> y[*s], z[*s, 1@dim]", {"x": (2, 3, 4)}, {"dim": -2}, [(2, 4), (2, 1, 4)]),
        ("x[*s, *r@d] -> y[*s, *ones(r)@d]", {"x": (2, 3, 4)}, {"d": [0, -1]}, [(1, 3, 1)]),
        ("x[*s, *r@d] -> y[*s]", {"x": (2, 3, 4)}, {"d": None}, [()]),
        ("x[*s@perm] -> y[*s]", {"x": (2, 3, 4)}, {"perm": [2, 0, -2]}, [(4, 2, 3)]),
        ("x[*s, a@i, b@j] -> y[*s, b@i, a@j]", {"x": (2, 3, 4)}, {"i": 0, "j": 2}, [(4, 3, 2)]),
        ("xs[i][*s, n[i]@dim] -> y[*s, sum(n)@dim]", {"xs": [(2, 3), (2, 4)]}, {"dim": 1}, [(2, 7)]),
        ("xs[i][_, d] -> y[d]", {"xs": [(2, 3), (4, 3)]}, {}, [(3,)]),
        ("xs[i][sizes[i], d] -> y[d]", {"xs": [(2, 3), (4, 3)]}, {"sizes": [2, 4]}, [(3,)]),
        ("xs[i][*s] -> y[*s, len(xs)@dim]", {"xs": [(2, 3), (2, 3)]}, {"dim": -1}, [(2, 3, 2)]),
        ("xs[i][*s[i]], w[k] -> ys[i][*s[i], k]", {"xs": [(2,), (3, 4)], "w": (9,)}, {}, [[(2, 9), (3, 4, 9)]]),
        ("xs[i][n[i]], ys[j][n[j]] -> z[sum(n)]", {"xs": [(2,)], "ys": [(2,), (3,)]}, {}, [(5,)]),
        ("xs[i][n[i]], ys[j][n[j]] -> z[sum(n)]", {"xs": [(2,), (3,)], "ys": [(2,)]}, {}, [(5,)]),
        ("xs[i][n[i]], ys[i][n[i], k] -> z[max(n), k]", {"xs": [(2,), (3,)], "ys": [(2, 5), (3, 5)]}, {}, [(3, 5)]),
        (
            "x[*s, n@dim] -> ys[i < ceildiv(n, k)][*s, min(k, n - i * k)@dim]",
            {"x": (5, 2)},
            {"dim": 0, "k": 2},
            [[(2, 2), (2, 2), (1, 2)]],
        ),
        ("x[n] -> ys[i < len(sizes)][sizes[i]]", {"x": (5,)}, {"sizes": [2, 3]}, [[(2,), (3,)]]),
        ("x[*s] -> y[*reshape(s, shape)]", {"x": (4, 6)}, {"shape": [3, -1]}, [(3, 8)]),
        ("x[*s] -> y[*s[:k], *ones(s[k:])]", {"x": (4, 6, 5)}, {"k": 1}, [(4, 1, 1)]),
        ("x[*s] -> y[*s[:k], prod(s[k:])]", {"x": (4, 6, 5)}, {"k": -2}, [(4, 30)]),
        ("x[*s], w[*s[k:]] -> y[*s[k:], *s[:k]]", {"x": (4, 6), "w": (6,)}, {"k": 1}, [(6, 4)]),
        ("x[*s] -> y[*s[1:-1]], z[*s[:]]", {"x": (4, 6, 5)}, {}, [(6,), (4, 6, 5)]),
        ("x[n] -> y[*shape[:-1], n]", {"x": (4,)}, {"shape": [2, 3, 9]}, [(2, 3, 4)]),
        ("x[n] -> y[n - 1, 2 * n, n // 2, n % 2, -n + 9, ceildiv(n, 2)]", {"x": (5,)}, {}, [(4, 10, 2, 1, 4, 3)]),
        ("x[n, 2 * n] -> y[n]", {"x": (3, 6)}, {}, [(3,)]),
        ("x[k, n], w[k * 2] -> y[n]", {"x": (3, 6), "w": (6,)}, {}, [(6,)]),
        ("x[n], b[m] -> y[m if b else n]", {"x": (3,), "b": None}, {}, [(3,)]),
        ("x[n], b[m] -> y[m if b else n]", {"x": (3,), "b": (4,)}, {}, [(4,)]),
        # An absent input is missed only where it is needed.
        ("x[n], b[m] -> y[m if f else n]", {"x": (3,), "b": None}, {"f": False}, [(3,)]),
        (
            "x[n], b[m] -> y[n or 5, f + 1, min(f, 3) + 0, len(ones(s))], z[k]",
            {"x": (0,), "b": None},
            {"f": True, "s": [4], "k": 2},
            [(5, 2, 1, 1), (2,)],
        ),
        ("x[*s] -> y[2 if s == t else 3]", {"x": (3, 4)}, {"t": [3, 4]}, [(2,)]),
        ("x[n], b[m] -> y[n], z[m] if b else None", {"x": (3,), "b": None}, {}, [(3,), None]),
        ('x[b, s] if layout == "BS" else [s, b] -> y[b]', {"x": (3, 4)}, {"layout": "SB"}, [(4,)]),
        (
            "x[n] -> y[n] if mask[1] else None, z[1] if not mask[-1] else [2]",
            {"x": (3,)},
            {"mask": [True, False]},
            [None, (1,)],
        ),
        ("x[n] -> y[k[0]] where len(k) == 2, k[1] == True", {"x": (3,)}, {"k": [4, True]}, [(4,)]),
        ("x[n] if f else [n, pad[0]] -> y[n]", {"x": (3,)}, {"f": True, "pad": []}, [(3,)]),
        ("x[n] -> y[n] if k is None else [k]", {"x": (3,)}, {"k": None}, [(3,)]),
        ("x[n] -> y[n] if k in (1, 2) and not f else [k] if f else []", {"x": (3,)}, {"k": 3, "f": False}, [()]),
        ("x[*s] -> y[2 * r] where r = rank(x), q = r * 2, q == 4", {"x": (3, 4)}, {}, [(4,)]),
        ("x -> y like x, z[numel(x)]", {"x": (3, 4)}, {}, [(3, 4), (12,)]),
        ("x[n], y -> x", {"x": (3,), "y": (1,)}, {}, [(3,)]),
        ("if[n], then[*s], else[...] -> y[n], or[...]: then", {"if": (3,), "then": (), "else": (5,)}, {}, [(3,), (5,)]),
        ("-> y[*size]: int8", {}, {"size": [2, 3]}, [(2, 3)]),
        ("x[k, n] -> y[n]", {"x": (4, 5)}, {"k": 4}, [(5,)]),
        ("x[n] -> y[index(perm, 0)]", {"x": (3,)}, {"perm": [2, 1, 0]}, [(2,)]),
    ],
)
def test_shapes(text: str, shapes: dict[str, Any], attrs: dict[str, Any], wanted: list[Any]) -> None:
    assert shapes_of(text, shapes, attrs) == wanted
    assert parse_relation(str(parse_relation(text))) == parse_relation(text)


@pytest.mark.parametrize(
    ("dtype", "attrs", "wanted"),
    [
        ("", {}, "float16"),
        (": int8", {}, "int8"),
        (": w", {}, "float32"),
        (": promote(x, w)", {}, "float32"),
        (": promote(x, alpha)", {"alpha": 2.5}, "float16"),
        (": dst", {"dst": "bfloat16"}, "bfloat16"),
        (": int8 if q else w", {"q": False}, "float32"),
        (": int8 if dtype(x) == float16 else w", {}, "int8"),
        (": int8 if dtype(x) in (int8, bool) else w", {}, "float32"),
        (": float16 if dst == float16 else int8", {"dst": "float16"}, "float16"),
        (": float16 if dst == float16 else int8", {"dst": "float8_e5m2"}, "int8"),
        (": float16 if float16 != dst else int8", {"dst": None}, "float16"),
        (": dst if dst in (float16, bfloat16) else int8", {"dst": "bfloat16"}, "bfloat16"),
        (": dst if dst not in (float16, bfloat16) else w", {"dst": "bfloat16"}, "float32"),
        (": int8 if dtype(x) == dst else w", {"dst": "float16"}, "int8"),
        (": float16 if bool == 3 else w", {"bool": 3}, "float16"),
        (": floating(i)", {}, "float32"),
        (": integral_sum(i)", {}, "int64"),
        (": T", {}, "float32"),
    ],
)
def test_dtypes(dtype: str, attrs: dict[str, Any], wanted: str) -> None:
    relation = parse_relation(f"x[n], w[n]: T, i -> y[n]{dtype}")
    specs = relation.infer({"x": (3,), "w": (3,), "i": (3,)}, {"x": "float16", "w": "float32", "i": "int32"}, attrs)
    assert specs == (((3,), wanted),)


@pytest.mark.parametrize(
    ("operator", "operands", "size"), [("or", ["n"] * 31 + ["k"], 3), ("and", ["k"] * 31 + ["n"], 0)]
)
def test_chains_of_or_and_and_are_as_long_as_any(operator: str, operands: list[str], size: int) -> None:
    relation = parse_relation(f"x[n] -> y[{f' {operator} '.join(operands)}]")
    assert relation.infer({"x": (0,)}, {"x": "float32"}, {"k": 3}) == (((size,), "float32"),)


def test_a_last_dtype_holds_for_all_alternatives_but_like() -> None:
    relation = parse_relation("x[n], w[m] -> y[n] if c else [m]: int8, z like w if c else [0]: int8")
    shapes, dtypes = {"x": (3,), "w": (4,)}, {"x": "float16", "w": "float32"}
    assert relation.infer(shapes, dtypes, {"c": True}) == (((3,), "int8"), ((4,), "float32"))
    assert relation.infer(shapes, dtypes, {"c": False}) == (((4,), "int8"), ((0,), "int8"))


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("x[n] -> y[n", r"expected '\]' or ',', got the end\n  x\[n\] -> y\[n\n +\^"),
        ("x[n] y[n]", "expected '->' between inputs and outputs, got 'y'"),
        ("x[n] -> y[n] z", "expected ',' or the end, got 'z'"),
        ("x[n] -> y", r"output y has no shape; write y\[…\]"),
        ("x[n] -> y[_]", "'_', which no input binds"),
        ("x[n], x[n] -> y[n]", "input x occurs twice"),
        ("x[n] -> y[n], y[n]", "output y occurs twice"),
        ("x[..., ...] -> y[...]", "more than one '...', which nothing tells apart"),
        ("x[*s], w[s] -> y[*s]", "s is a dimension in w and a group"),
        ("x[m], ws[i][m[i]] -> y[m]", r"m is one size in x, but differs per tensor in ws \(m\[i\]\); write sum\(m\)"),
        ("ws[i][m[i], d] -> y[m, d]", r"m is one size in y, but differs per tensor in ws \(m\[i\]\); write sum\(m\)"),
        ("x[*s], ws[i][*s[i]] -> y[3]", r"s is one size in x, but differs per tensor in ws \(s\[i\]\); rename one"),
        ("x[x] -> y[x]", "x names an input and a dimension"),
        ("x[*s] -> y[*s[1:2:3]]", r"expected '\]', got ':'"),
        ("x[n] -> y[foo(n)]", "unknown function 'foo'; the functions are ceildiv"),
        ("x[n] -> y[ceildiv(n)]", r"ceildiv takes 2 argument\(s\), got 1"),
        ("x[n] -> y[h] where h = h + 1", "the definition of h uses itself"),
        ("x[n] -> y[h] where h = g, g = n", "uses g, which is defined after it"),
        ("x[n] -> y[n] where n = 3", "n has a meaning already"),
        ("x[n] -> y like z", "'like' names an input"),
        ("x like y -> y[n]", "input x has dimensions, not like y"),
        ("x[n] -> y[n] if c", "expected 'else'"),
        ("x[1 < n < 3] -> y[n]", "comparisons do not chain"),
        ("x[n] -> y[n]: $", r"'\$' does not belong to the language"),
        ('x[n] -> y["a"]', "a dimension must be an integer, a name or their arithmetic"),
        ("x[n] -> y[9223372036854775808]", r"at most 2\*\*63 - 1"),
        ("xs[i < 3][n] -> y[n]", "come with their count"),
        ("x[n] -> y[" + "(" * 99 + "n" + ")" * 99 + "]", "nested too deep; expected at most 32"),
        ("x[n] -> y[" + "n + " * 99 + "n]", "too many operators in a row; expected at most 32"),
        ("x[n] -> y[n] #" + "x" * MAX_LENGTH, "may have 16384 characters"),
        ("not a relation", "expected"),
        ("x[n] -> y[1_]", "1_ is not an integer: '_' may stand only between digits"),
        ("x[n] -> y[" + "9" * 5000 + "]", r"at most 2\*\*63 - 1"),
        ("x[n] -> y[" + "(" * 30 + "n" + (" + n" * 20 + ")") * 30 + "]", "must be at most 96 operations deep"),
    ],
)
def test_texts_that_are_refused(text: str, match: str) -> None:
    with pytest.raises(RelationError, match=match):
        parse_relation(text)


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("(m, k), (k, n) -> (m, n)", "each tensor has its name in the prototype"),
        ("x[n] w[n] -> y[n]", "write ',' between tensors: …, w[…]"),
        ("x[n] => y[n]", "write '->'"),
        ("x[n] --> y[n]", "write '->'"),
        ("x[n] → y[n]", "write '->'"),
        ("x[n] -> y[n] float32", "write ':' before a dtype: y[n]: float32"),
        ("x[n] -> y[n]: torch.float32", "write the name alone: float32"),
        ("x[n] -> y[n / 2]", "write a // b, which rounds down, or ceildiv"),
        ("x[n] -> y[2n]", "write the product with '*': 2 * n"),
        ("x[n] -> y[n * 2.5]", "write n * 5 // 2"),
        ("x[n] -> y[n ** 2]", "write n * n"),
        ("x[n] -> y[x.size(0)]", "sizes have names in brackets"),
        ("x[*] -> y[*]", "have a name: write *s"),
        ("x[n], gamma[n]? -> y[n]", "leave '?' out"),
        ("x[n] -> y[n] where n > 1 && n < 3", "write 'and'"),
        ("x[n] -> y[n] where !f", "write 'not'"),
        ("x[n] -> y[n]; n > 1", "'where' before conditions"),
        ("x[n] -> y[n], where n > 1", "write no ',' before 'where'"),
        ("x[n] -> y[n],", "leave out the last ','"),
        ("x[n]", "write the outputs behind the inputs"),
    ],
)
def test_other_notations_are_answered_with_what_to_write(text: str, instead: str) -> None:
    with pytest.raises(RelationError, match=f"; .*{re.escape(instead)}"):
        parse_relation(text)


@pytest.mark.parametrize(("name", "instead"), [("DT_FLOAT", "float32"), ("fp16", "float16"), ("bf16", "bfloat16")])
def test_other_names_of_dtypes_are_answered_with_the_languages(name: str, instead: str) -> None:
    with pytest.raises(RelationError, match=f"{name} must be a dimension .*Write {instead} for {name}"):
        parse_relation(f"x[n] -> y[n]: {name}").infer({"x": (1,)}, {"x": "int8"}, {})


@pytest.mark.parametrize(
    ("text", "shapes", "attrs", "match"),
    [
        ("x[m, k], w[k, n] -> y[m, n]", {"x": (2, 3), "w": (4, 5)}, {}, "dimension 0 is 4, but dimension k is 3 by x"),
        # What an alternative bound is bound, though the others leave it empty.
        (
            "x[_, n] if f else [m, *r], w[m] -> y[m]",
            {"x": (6, 3), "w": (3,)},
            {"f": False},
            "dimension 0 is 3, but dimension m is 6",
        ),
        ("x[m, k] -> y[m]", {"x": (2,)}, {}, r"x\[m, k\] has 2 dimension\(s\), the input has 1: \(2,\)"),
        ("x[*s, n] -> y[n]", {"x": ()}, {}, "needs at least 1"),
        ("x[*s], w[*s] -> y[*s]", {"x": (2, 3), "w": (2, 4)}, {}, r"dimension 1 of \*s is 3 by x, but 4 by w"),
        ("x[...], w[...] -> y[...]", {"x": (2, 3), "w": (2, 4)}, {}, "do not broadcast: 3 and 4"),
        ("x[n] -> y[n // k]", {"x": (2,)}, {"k": 0}, "n // k divides by k, which is 0"),
        ("x[n] -> y[n % k]", {"x": (2,)}, {"k": 0}, "divides by k"),
        ("x[n] -> y[n - 3]", {"x": (2,)}, {}, "a dimension n - 3 = -1"),
        ("x[n] -> y[k]", {"x": (2,)}, {"k": "big"}, "k is 'big'; expected an integer"),
        ("x[n] -> y[k + 1]", {"x": (2,)}, {"k": None}, "k is None; expected an integer"),
        ("x[n] -> y[k[2]]", {"x": (2,)}, {"k": [1]}, "k has 1 element"),
        ("x[*s, n@d] -> y[n]", {"x": (2, 3)}, {"d": 2}, "axis 2 is out of range; with 2 dimension"),
        ("x[*s, *r@d] -> y[*s]", {"x": (2, 3)}, {"d": [0, -2]}, "axis 0 is named twice"),
        ("x[n] -> y[n] where n % 2 == 0", {"x": (3,)}, {}, "n % 2 == 0 must hold; n is 3"),
        ("x[n]: int8 -> y[n]", {"x": (3,)}, {}, "x has dtype float16; allowed: int8"),
        ("x[*s] -> y[*reshape(s, t)]", {"x": (4,)}, {"t": [3, -1]}, "4 elements do not fill"),
        ("x[*s] -> y[*s[k:]]", {"x": (4, 5)}, {"k": 3}, r"s\[k:\] is from 3 to 2 of 2 element\(s\): \(4, 5\)"),
        ("x[*s] -> y[*s[:k]]", {"x": (4, 5)}, {"k": -3}, "from 0 to -3 of 2"),
        ("x[*s] -> y[*s[1:-1]]", {"x": (4,)}, {}, "the end not before the start"),
        ("x[*s], w[*s[1:]] -> y[*s]", {"x": (4, 5), "w": (4,)}, {}, "5"),
        ("x[*s] -> y[*k[1:]]", {"x": (4,)}, {"k": 3}, "k; expected a list of integers|k is 3"),
        ("x[*s] -> y[*reshape(s, t)]", {"x": (4,)}, {"t": [3]}, r"4 elements do not fill \[3\]"),
        ("x[*s] -> y[*reshape(s, t)]", {"x": (4,)}, {"t": [-2, -2]}, "-2 must be a size"),
        ("x[*s] -> y[*reshape(s, t)]", {"x": (4,)}, {"t": 4}, "t is 4; expected a list of sizes"),
        ("x[*s, *r], g[*r] -> y[*s]", {"x": (2, 3), "g": (4,)}, {}, r"dimension 0 of \*r is 4 by g, but 3 by x"),
        ("x[*s, *r], g[*r] -> y[*s]", {"x": (3,), "g": (2, 3)}, {}, "axis -2 is out of range"),
        ("x[n@d, n] -> y[n]", {"x": (2, 3)}, {"d": 0}, "dimension 0 is 3, but dimension n is 2"),
        ("x[*k] -> y[2]", {"x": (2,)}, {"k": 3}, "k is 3; expected a list of sizes"),
        ("x[n] -> y[n + k - k]", {"x": (2,)}, {"k": 2**63 - 1}, "must fit into 64 bits"),
        ("x[*s] -> y[sum(s) - 1, prod(k)]", {"x": (2,)}, {"k": [2**62, 2]}, "must fit into 64 bits"),
        ("xs[i][n], ys[i][n] -> z[n]", {"xs": [(2,)], "ys": [(2,), (2,)]}, {}, "ys has 2 tensors, but another list"),
        (
            "xs[i][n[i]], ys[j][n[j]] -> z[sum(n)]",
            {"xs": [(2,)], "ys": [(3,), (4,)]},
            {},
            r"is 2 by xs\[i\]\[0\] \(j = 0\)",
        ),
        ("xs[i][n] -> z[n]", {"xs": [(2,), (3,)]}, {}, r"dimension n is 2 by xs\[i\]\[0\] \(i = 1\)"),
        ("x[n] -> ys[i < k][n]", {"x": (2,)}, {"k": 10**9}, "would have 1000000000 tensors"),
    ],
)
def test_inputs_that_are_refused(text: str, shapes: dict[str, Any], attrs: dict[str, Any], match: str) -> None:
    with pytest.raises(ShapeError, match=match):
        shapes_of(text, shapes, attrs)


@pytest.mark.parametrize(
    ("text", "shapes", "attrs", "match"),
    [
        (
            "x[n] -> y[m]",
            {"x": (2,)},
            {"k": 1},
            "m must be a dimension of an input or an attr.*dimensions: n; attrs: k",
        ),
        ("x[n], b[m] -> y[m]", {"x": (2,), "b": None}, {}, "m is given only by b, which is absent"),
        ("x[n], b[m] -> y like b", {"x": (2,), "b": None}, {}, "y is like b, which is absent"),
        ("x[*s, *r], g[*r] -> y[*s]", {"x": (2, 3), "g": None}, {}, "r is given only by g, which is absent"),
        ("x[*s, *t] -> y[*s]", {"x": (2,)}, {}, "input x has 2 items of any length.*all but one must be known"),
        ("x[*s, *t], y[*t, *s] -> y[*s]", {"x": (2,), "y": (2,)}, {}, "all but one must be known"),
        ("x[n@d, *s, *t], w[*s] -> y[*t]", {"x": (2,), "w": ()}, {"d": 0}, "next to an item with '@' only one"),
        ("-> y[2]", {}, {}, "has no dtype and no input gives one"),
        ("x[n] -> y[n]", {"z": (2,)}, {}, "has no input z; it has x"),
        ("x[n] -> y[x]", {"x": (2,)}, {}, "x is a tensor; write rank"),
        ("x[2 * n] -> y[n]", {"x": (2,)}, {}, r"Write a for it, and a // 2 for n, where a % 2 == 0$"),
        ("x[n + m], w[m] -> y[n]", {"x": (2,), "w": (1,)}, {}, "and a - m for n$"),
        ("x[num * a, d] -> y[num, a, d]", {"x": (2, 1)}, {}, "Write b for it, and make a an attr of the operator or"),
    ],
)
def test_relations_that_do_not_fit(text: str, shapes: dict[str, Any], attrs: dict[str, Any], match: str) -> None:
    with pytest.raises(RelationError, match=match):
        shapes_of(text, shapes, attrs)


def test_tied_dtypes_must_agree() -> None:
    relation = parse_relation("x[n]: T, w[n]: T -> y[n]: T")
    with pytest.raises(ShapeError, match="x has dtype int8 and w has dtype bool, but both must be T"):
        relation.infer({"x": (2,), "w": (2,)}, {"x": "int8", "w": "bool"}, {})


@pytest.mark.parametrize(
    ("text", "dtypes", "match"),
    [
        ("xs[i][n]: T -> y[n]", ["int8", "int8", "bool"], "xs has dtypes int8 and bool, but all must be T"),
        ("xs[i][n]: (int8, int16) -> y[n]", ["int8", "bool"], "xs has dtype bool; allowed: int8, int16"),
        (
            "w[n]: T, xs[i][n]: T -> y[n]",
            ["int8", "bool"],
            "w has dtype int8 and xs has dtype bool, but both must be T",
        ),
    ],
)
def test_dtypes_of_a_list_are_demanded_of_each_tensor(text: str, dtypes: list[str], match: str) -> None:
    relation = parse_relation(text)
    named = {"xs": dtypes} | ({"w": "int8"} if "w" in relation.inputs else {})
    shapes = {name: [(2,)] * len(value) if isinstance(value, list) else (2,) for name, value in named.items()}
    with pytest.raises(ShapeError, match=match):
        relation.infer(shapes, named, {})
    alike = {name: [value[0]] * len(value) if isinstance(value, list) else value for name, value in named.items()}
    assert relation.infer(shapes, alike, {}) == (((2,), "int8"),)


def test_the_document_shows_the_grammar_and_its_examples_parse() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert GRAMMAR in text
    examples = [line for block in re.findall(r"```relation\n(.*?)```", text, re.S) for line in block.splitlines()]
    assert len(examples) >= 14
    for line in examples:
        relation = parse_relation(line.split(":", 1)[1])
        assert parse_relation(str(relation)) == relation


# ------------------------------------------------------------------------------------------------------------------
# laws

NAMES = st.sampled_from(["m", "n", "k"])
EXPRESSIONS = st.recursive(
    NAMES | st.integers(0, 9).map(str),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner).map(lambda t: f"({t[0]}) {t[1]} ({t[2]})"),
        st.tuples(inner, inner).map(lambda t: f"min({t[0]}, {t[1]})"),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} if {t[1]} > 1 else {t[2]})"),
        inner.map(lambda e: f"-({e})"),
    ),
    max_leaves=8,
)


@given(EXPRESSIONS, st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_arithmetic_is_that_of_python_and_its_text_round_trips(text: str, m: int, n: int, k: int) -> None:
    relation = parse_relation(f"x[m, n, k] -> y[{text}]")
    again = parse_relation(str(relation))
    assert again == relation
    try:  # the text is this test's own, made of the operators above
        wanted = eval(text, {"m": m, "n": n, "k": k, "min": min})
    except ZeroDivisionError:
        wanted = -1
    for r in (relation, again):
        if wanted < 0:
            with pytest.raises(ShapeError):
                r.infer({"x": (m, n, k)}, {"x": "int8"}, {})
        else:
            assert r.infer({"x": (m, n, k)}, {"x": "int8"}, {}) == (((wanted,), "int8"),)


@given(st.text(alphabet='xyn[]()*.,->:@+ 01<=!?"#\n\\', max_size=40))
def test_any_text_parses_or_is_refused_with_an_error_of_its_own(text: str) -> None:
    try:
        relation = parse_relation(text)
    except RelationError:
        return
    assert parse_relation(str(relation)) == relation


@given(st.integers(0, 10**6))
def test_samples_fit_and_differ_only_in_sizes_for_one_structure(seed: int) -> None:
    relation = parse_relation("x[*s, n@dim], w[k, n], xs[i][*t, m[i]] -> y[*s, k@dim], z[sum(m)] where n % 2 == 0")
    attrs = {"dim": -1}
    first = sample(relation, attrs, random.Random(seed), structure=3)
    second = sample(relation, attrs, random.Random(seed + 1), structure=3)
    assert [len(s) for s in (first.shapes["x"], *first.shapes["xs"])] == [
        len(s) for s in (second.shapes["x"], *second.shapes["xs"])
    ]
    relation.infer(first.shapes, first.dtypes, attrs)
