"""Generated InferShape and InferDataType, compiled and run against the relation they come from.

Compiled with the host toolkit's headers of operator projects. One source with all relations is compiled once.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from ascend_graph.codegen.infer_shape import infer_shape_source
from ascend_graph.codegen.infer_shape_names import GE_DTYPES
from ascend_graph.codegen.rendering import GenerationError

from ascend_graph.environment import toolkit_directory
from ascend_graph.prototypes import parse_text
from ascend_graph.prototypes.model import Attr, AttrType, OpPrototype, Parameter, ParameterKind
from ascend_graph.shapes import ShapeError, parse_relation
from ascend_graph.shapes.samples import RelationSampleError, sample


def prototype(op_type: str, inputs: str, attrs: Sequence[Attr] = (), outputs: int = 1) -> OpPrototype:
    kinds = {"?": ParameterKind.OPTIONAL}
    parameters = tuple(Parameter(n.rstrip("?"), kinds.get(n[-1], ParameterKind.REQUIRED)) for n in inputs.split())
    return OpPrototype(op_type, parameters, tuple(attrs), tuple(Parameter(f"y{n}") for n in range(outputs)))


def integer(name: str) -> Attr:
    return Attr(name, AttrType.INT, True)


def flag(name: str) -> Attr:
    return Attr(name, AttrType.BOOL, True)


def integers(name: str) -> Attr:
    return Attr(name, AttrType.LIST_INT, True)


#: Prototype, relation, attr values to try.
CASES: list[tuple[OpPrototype, str, dict[str, list[Any]]]] = [
    (prototype("Same", "x"), "x[*s] -> y[*s]", {}),
    (prototype("MatMul", "x w bias?"), "x[..., m, k], w[k, n], bias[n] -> y[..., m, n]: promote(x, w)", {}),
    (prototype("Add", "x z"), "x[...], z[...] -> y[...]: promote(x, z)", {}),
    (prototype("Norm", "x gamma", outputs=2), "x[*s, d], gamma[d] -> y[*s, d], rstd[*s, 1]: float32", {}),
    (
        prototype("Glu", "x", [integer("dim")]),
        "x[*s, n@dim] -> y[*s, n // 2@dim] where n % 2 == 0",
        {"dim": [0, -1, 1]},
    ),
    (
        prototype("Sum", "x", [integers("dims"), flag("keep")]),
        "x[*s, *r@dims] -> y[*s, *ones(r)@dims] if keep else [*s]: integral_sum(x)",
        {"dims": [[0], [-1, 0], [1], []], "keep": [True, False]},
    ),
    (prototype("Permute", "x", [integers("perm")]), "x[*s@perm] -> y[*s]", {"perm": [[1, 0], [2, 0, 1], [0]]}),
    (
        prototype("Conv", "x w", [integers("stride"), integers("pad")]),
        (
            "x[n, c, h, v], w[o, c, a, b] -> y[n, o, p, q] where p = (h + 2 * pad[0] - a) // stride[0] + 1, "
            "q = (v + 2 * pad[1] - b) // stride[-1] + 1, p > 0, q > 0"
        ),
        {"stride": [[1, 1], [2, 3]], "pad": [[0, 0], [1, 2]]},
    ),
    (
        prototype("Route", "x probs? rows", [integer("k")], outputs=2),
        (
            "x[_, h], probs[_, t], rows[n] -> y[n // t if probs else ceildiv(n, k), h], z[min(n, k) * 8]: "
            "probs if probs else x"
        ),
        {"k": [1, 3, 8]},
    ),
    (
        prototype("Layout", "x", [Attr("layout", AttrType.STRING, True), integer("heads")]),
        (
            'x[b, s, h] if layout == "BSH" else [s, b, h] -> y[b, heads, s, 8]: float32 '
            'where layout in ("BSH", "SBH"), heads > 0 and heads <= 64, h != 0'
        ),
        {"layout": ["BSH", "SBH"], "heads": [1, 8]},
    ),
    (prototype("Cast", "x", [Attr("to", AttrType.TYPE, True)]), "x[*s] -> y[*s]: to", {"to": [0, 1, 27, 3]}),
    (
        prototype("Flat", "x w", outputs=2),
        "x[*s], w[2 * n, n] -> y[prod(s), len(s), numel(x), rank(w)], z like x: float16",
        {},
    ),
    (prototype("Kept", "x y"), "x[*s]: T, y[*s]: T -> x", {}),
    (
        prototype("Maybe", "x m?", [flag("both")], outputs=2),
        "x[n], m[n] -> y[n], z[n, 2] if both and m else [0]: floating(x)",
        {"both": [True, False]},
    ),
    (
        prototype("Made", "", [integer("n"), integers("size")], outputs=2),
        "-> y[n, 2]: bool, z[*size]: int8",
        {"n": [3], "size": [[2, 3], []]},
    ),
]


def expression(rng: random.Random, depth: int = 3) -> str:
    """An arithmetic expression over two dimensions, a group and an attr."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(["m", "n", "k", "rank(x)", "prod(s)", "2", "3"])
    a, b = expression(rng, depth - 1), expression(rng, depth - 1)
    if rng.random() < 0.3:
        return rng.choice([f"min({a}, {b})", f"max({a}, {b})", f"ceildiv({a}, {b})", f"({a} if m > k else {b})"])
    return f"({a}) {rng.choice(['+', '-', '*', '//', '%'])} ({b})"


def arithmetic(number: int) -> tuple[OpPrototype, str, dict[str, list[Any]]]:
    """A case with two random sizes; the first seed whose relation accepts some inputs."""
    rng = random.Random(number)
    while True:
        text = f"x[*s, m], w[n] -> y[{expression(rng)}, *s, {expression(rng)}]"
        try:
            for k in (1, 2, 5):
                sample(parse_relation(text), {"k": k}, rng, tries=50)
        except (RelationSampleError, ShapeError):
            continue
        return prototype(f"Arithmetic{number}", "x w", [integer("k")]), text, {"k": [1, 2, 5]}


#: Names that C++ or the template use, and what was refused or did not compile once.
HOSTILE: list[tuple[OpPrototype, str]] = [
    (
        prototype("Names", "context batch? default", [integer("layout"), flag("class")], outputs=2),
        (
            "context[int, *results], batch[int], default[größe, size__] -> y[layout, größe, "
            "*results] if class else [size__], "
            "z[int, int@layout]: default"
        ),
    ),
    (prototype("Compared", "x", [integer("dst_type")]), "x[*s] -> y[*s]: float16 if dst_type == float16 else int8"),
    (prototype("ByRank", "x w"), "x[*s], w[n] -> y[n] if rank(x) == 2 else [2 * n] if numel(x) > 3 else [1]"),
    (prototype("Choice", "x"), "x[n] -> y[n if n > 5 else 5]"),
    (prototype("Negated", "x w"), "x[n], w[m] -> y[m] where not n == 4, not (m > 3 and n < 2)"),
    (prototype("OrValue", "x"), "x[n] -> y[n or 5]"),
    (prototype("Scalar", "x", [Attr("alpha", AttrType.INT, True)]), "x[*s] -> y[*s]: promote(x, alpha)"),
    (prototype("Float", "x", [Attr("alpha", AttrType.FLOAT, True)]), "x[*s] -> y[*s]: promote(x, alpha)"),
    (prototype("Promote", "x w"), "x[*s], w[*t] -> y[*s]: promote(x, w)"),
    (prototype("Floating", "x"), "x[*s] -> y[*s]: floating(x)"),
    (prototype("Tied", "x w"), "x[*s]: T, w[*t]: T -> y[*s]"),
    (prototype("Allowed", "x"), "x[*s]: (float16, int8) -> y[*s]"),
    (prototype("Axis", "x", [integers("dim")]), "x[*s, n@dim] -> y[n]"),
    (prototype("Modulo", "x", [integer("k")]), "x[n] -> y[n % k]"),
    (prototype("Item", "x", [integers("pad")]), "x[n] -> y[pad[1]]"),
    (prototype("Flag", "x", [flag("f")]), "x[n] -> y[f]"),
    (prototype("Later", "x w?", [integers("pad")]), "x[n], w[(pad[0])] -> y[n]"),
]

CASES += [arithmetic(number) for number in range(16)]

#: What reads a call a line and answers with JSON; ``make bench NAME=relations`` runs it too.
DRIVER = Path(__file__).parents[2] / "benchmarks/data/relations/infer_shape.cpp"
RELATIONS = [*((p, text) for p, text, _ in CASES), *HOSTILE]
NUMBERS = {p.op_type: number for number, (p, _) in enumerate(RELATIONS)}


def row(p: OpPrototype) -> str:
    space = f"ascend_graph_{p.op_type}"
    functions = f"{space}::InferShape, {space}::InferDataType"
    return f"    {{{NUMBERS[p.op_type]}, {{{len(p.inputs)}, {len(p.outputs)}, {functions}}}}},"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    directory = tmp_path_factory.mktemp("infer_shape")
    source = "".join(infer_shape_source(p, parse_relation(text)) for p, text in RELATIONS)
    source += DRIVER.read_text().replace("// @CASES@", "\n".join(row(p) for p, _ in RELATIONS))
    (directory / "all.cpp").write_text(source)
    headers = toolkit_directory() / "include/op_host"
    command = [compiler, "-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", f"-I{headers}"]
    subprocess.run([*command, "all.cpp", "-o", "all"], cwd=directory, check=True, timeout=900)
    return directory / "all"


def ge_number(name: str) -> int:
    return int(GE_DTYPES[name])


def line(p: OpPrototype, shapes: dict[str, Any], dtypes: dict[str, Any], attrs: dict[str, Any]) -> str:
    words: list[Any] = [NUMBERS[p.op_type]]
    for parameter in p.inputs:
        shape = shapes.get(parameter.name)
        words += [0, 0, 0] if shape is None else [1, ge_number(dtypes[parameter.name]), len(shape), *shape]
    for attr in p.attrs:
        value = attrs[attr.name]
        if isinstance(value, list):
            words += ["l", len(value), *value]
        else:
            words += [
                {bool: "b", str: "s", float: "f"}.get(type(value), "i"),
                int(value) if isinstance(value, bool) else value,
            ]
    return " ".join(map(str, words))


def run(program: Path, lines: list[str]) -> list[Any]:
    done = subprocess.run(
        [program], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True, timeout=600
    )
    return [json.loads(text) for text in done.stdout.splitlines()]


def choices(values: dict[str, list[Any]], rng: random.Random) -> dict[str, Any]:
    return {name: rng.choice(options) for name, options in values.items()}


NAME_OF = {0: "float32", 1: "float16", 27: "bfloat16", 3: "int32"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].op_type)
def test_cpp_says_what_the_relation_says(program: Path, case: tuple[OpPrototype, str, dict[str, list[Any]]]) -> None:
    p, text, values = case
    relation = parse_relation(text)
    rng = random.Random(p.op_type)
    optional = [i.name for i in p.inputs if i.kind is ParameterKind.OPTIONAL]
    lines, wanted = [], []
    for _ in range(60):
        attrs = choices(values, rng)
        named = {k: NAME_OF[v] if k == "to" else v for k, v in attrs.items()}
        found = sample(
            relation, named, rng, optional=optional, dtypes=["float16", "float32", "bfloat16", "int32", "bool"]
        )
        lines.append(line(p, dict(found.shapes), dict(found.dtypes), attrs))
        wanted.append([[list(s), ge_number(d)] for s, d in relation.infer(found.shapes, found.dtypes, named)])
    assert run(program, lines) == wanted


def test_cpp_refuses_what_the_relation_refuses(program: Path) -> None:
    matmul, glu, conv = CASES[1][0], CASES[4][0], CASES[7][0]
    dtypes = {"x": "float16", "w": "float16"}
    runs = [
        (matmul, {"x": (2, 3), "w": (4, 5)}, {}),
        (matmul, {"x": (3,), "w": (3, 5)}, {}),
        (glu, {"x": (3, 5)}, {"dim": 0}),
        (glu, {"x": (4, 6)}, {"dim": 2}),
        (conv, {"x": (1, 2, 3, 3), "w": (4, 2, 5, 5)}, {"stride": [1, 1], "pad": [0, 0]}),
        (conv, {"x": (1, 2, 9, 9), "w": (4, 2, 5, 5)}, {"stride": [0, 0], "pad": [0, 0]}),
    ]
    relations = {p.op_type: parse_relation(r) for p, r, _ in CASES}
    for p, shapes, attrs in runs:
        with pytest.raises(ShapeError):
            relations[p.op_type].infer(shapes, {n: dtypes[n] for n in shapes}, attrs)
    assert run(program, [line(p, s, dtypes, a) for p, s, a in runs]) == [None] * len(runs)


def test_a_relation_in_a_comment_ends_with_its_line() -> None:
    """A backslash at its end would make the next line part of the comment, and other letters need an encoding."""
    p = prototype("Commented", "x", [Attr("mode", AttrType.STRING, True)])
    source = infer_shape_source(p, parse_relation('x[n] -> y[n] where mode != "fianc\u00e9e\\\\"'))
    comment = source.splitlines()[1]
    assert "x[n] -> y[n]" in comment
    assert "\\" not in comment
    assert comment.isascii()


def test_outputs_are_found_by_name_whatever_the_order_of_the_relation() -> None:
    inputs, outputs = (Parameter("x"),), (Parameter("y"), Parameter("largest"))
    prototype = OpPrototype("Peak", inputs, (), outputs)
    texts = "x[m, n] -> y[m, n], largest[m]", "x[m, n] -> largest[m], y[m, n]"
    first, second = (infer_shape_source(prototype, parse_relation(text)) for text in texts)
    assert first.partition("namespace")[2] == second.partition("namespace")[2]


def test_unknown_sizes_stay_unknown(program: Path) -> None:
    matmul, glu, route = CASES[1][0], CASES[4][0], CASES[8][0]
    dtypes = dict.fromkeys(("x", "w", "rows"), "float32")
    got = run(
        program,
        [
            line(matmul, {"x": (-1, -1, 3), "w": (-1, 5)}, dtypes, {}),
            line(matmul, {"x": (-2,), "w": (3, 5)}, dtypes, {}),
            line(glu, {"x": (4, -1)}, dtypes, {"dim": -1}),
            line(route, {"x": (2, 7), "rows": (-1,)}, dtypes, {"k": 3}),
        ],
    )
    assert [[shape for shape, _ in outputs] for outputs in got] == [[[-1, -1, 5]], [[-2]], [[4, -1]], [[-1, 7], [-1]]]


@pytest.mark.parametrize(
    ("op_type", "shapes", "dtypes", "attrs", "wanted"),
    [
        # What a size that is not known decides is what both ways have in common.
        ("Choice", [(-1,)], "float16", {}, [[-1]]),
        ("Choice", [(3,)], "float16", {}, [[5]]),
        ("Negated", [(-1,), (7,)], "float16", {}, [[7]]),
        ("Negated", [(4,), (-1,)], "float16", {}, None),
        ("ByRank", [(-2,), (3,)], "float16", {}, [[-1]]),
        ("ByRank", [(2, -1), (3,)], "float16", {}, [[3]]),
        ("ByRank", [(-1,), (3,)], "float16", {}, [[-1]]),
        ("ByRank", [(1,), (-1,)], "float16", {}, [[1]]),
        ("OrValue", [(0,)], "float16", {}, [[5]]),
        ("Names", [(2, 3), None, (4, 5)], "float16", {"layout": 1, "class": True}, [[1, 4, 3], [2, 2]]),
        ("Names", [(2, 3), (2,), (4, 5)], "float16", {"layout": 0, "class": False}, [[5], [2, 2]]),
        ("Names", [(2, 3), (3,), (4, 5)], "float16", {"layout": 0, "class": False}, None),
        ("Axis", [(2, 3)], "float16", {"dim": [-1]}, [[3]]),
        ("Axis", [(2, 3)], "float16", {"dim": []}, None),
        ("Axis", [(2, 3)], "float16", {"dim": [0, 1]}, None),
        ("Modulo", [(3,)], "float16", {"k": 0}, None),
        ("Modulo", [(-1,)], "float16", {"k": 0}, None),
        ("Item", [(3,)], "float16", {"pad": [4]}, None),
        ("Flag", [(3,)], "float16", {"f": True}, None),
        ("Later", [(3,), (4,)], "float16", {"pad": [4]}, [[3]]),
        ("Later", [(3,), (4,)], "float16", {"pad": []}, None),
        ("Later", [(3,), None], "float16", {"pad": []}, [[3]]),
        ("Tied", [(3,), (3,)], "float16 int8", {}, None),
        ("Allowed", [(3,)], "float32", {}, None),
        ("Promote", [(3,), (3,)], "int32 uint16", {}, None),
    ],
)
def test_shapes_that_were_wrong(
    program: Path, op_type: str, shapes: list[Any], dtypes: str, attrs: dict[str, Any], wanted: Any
) -> None:
    p = next(p for p, _ in HOSTILE if p.op_type == op_type)
    names = [i.name for i in p.inputs]
    each = dict(zip(names, dtypes.split() * (len(names) if " " not in dtypes else 1), strict=True))
    (got,) = run(program, [line(p, dict(zip(names, shapes, strict=True)), each, attrs)])
    assert (got and [shape for shape, _ in got]) == wanted


@pytest.mark.parametrize(
    ("op_type", "dtypes", "attrs", "wanted"),
    [
        ("Scalar", "float16", {"alpha": 27}, "float16"),
        ("Scalar", "bool", {"alpha": 27}, "int64"),
        ("Float", "int32", {"alpha": 2.5}, "float32"),
        ("Float", "float8_e5m2", {"alpha": 2.5}, "float8_e5m2"),
        ("Floating", "float8_e4m3fn", {}, "float8_e4m3fn"),
        ("Floating", "int8", {}, "float32"),
        ("Promote", "uint8 int8", {}, "int16"),
        ("Promote", "float16 bfloat16", {}, "float32"),
        ("Compared", "float32", {"dst_type": 1}, "float16"),
        ("Compared", "float32", {"dst_type": 35}, "int8"),
    ],
)
def test_dtypes_that_were_wrong(program: Path, op_type: str, dtypes: str, attrs: dict[str, Any], wanted: str) -> None:
    p = next(p for p, _ in HOSTILE if p.op_type == op_type)
    each = dict(zip([i.name for i in p.inputs], dtypes.split(), strict=True))
    (got,) = run(program, [line(p, dict.fromkeys(each, (3,)), each, attrs)])
    assert got == [[[3], ge_number(wanted)]]


@pytest.mark.parametrize(
    ("p", "text", "match"),
    [
        (prototype("A", "x"), "z[n] -> y[n]", "no input z; it has x"),
        (prototype("A", "x"), "x[n] -> y[n * k]", "no attr k; it has none"),
        (prototype("A", "x", outputs=2), "x[n] -> y[n]", "1 outputs; expected 2"),
        (prototype("A", "x"), "x[i][n] -> y[n]", "x is a list of tensors"),
        (prototype("A", "x"), "x[n] -> y = n", "which is not a tensor"),
        (prototype("A", "x"), "x[n] -> y[n]: float16 if n > 5 else int8", "the dtype of y depends on a size"),
        (prototype("A", "x", [Attr("t", AttrType.TENSOR, True)]), "x[n] -> y[t]", "attr t is a Tensor"),
        (prototype('A"; evil', "x"), "x[n] -> y[n]", "is not an identifier"),
    ],
)
def test_what_cannot_be_generated(p: OpPrototype, text: str, match: str) -> None:
    with pytest.raises(GenerationError, match=match):
        infer_shape_source(p, parse_relation(text))


@pytest.mark.parametrize("said", ["-> y[n]", "-> y[n], acc"])
def test_a_written_input_may_be_left_out_of_the_outputs(said: str) -> None:
    (written,) = parse_text(
        "REG_OP(Put).INPUT(acc, TensorType({DT_FLOAT})).INPUT(x, TensorType({DT_FLOAT}))"
        ".OUTPUT(acc, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT})).OP_END_FACTORY_REG(Put)"
    ).prototypes
    source, whole = (infer_shape_source(written, parse_relation(f"acc[n], x[n] {o}")) for o in (said, "-> acc, y[n]"))
    body, expected = (text[text.index("InferShape(") :] for text in (source, whole))
    assert body == expected
    with pytest.raises(GenerationError, match="the relation has 0 outputs; expected 2"):
        infer_shape_source(written, parse_relation("acc[n], x[n] ->"))
