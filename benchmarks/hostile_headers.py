"""Hostile headers of up to 1 MB, which must not hang or exhaust the front end.

There are three families. The first repeats every fragment of the language in every possible context, first to a small size,
then the slowest and largest up to 1 MB. The second has small trees of macros, constants and conditions with a huge expansion.
The third has headers of the wheel's prototypes with random damage. Each is read in a process that may die; its time and its
peak memory are measured there.

make bench NAME=hostile_headers, or without the host runtime: python benchmarks/hostile_headers.py
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from _common import run
from front_end import wheel_prototypes
from rich.console import Console
from rich.table import Table

SIZE = 1 << 20
#: Small size at which every repeated fragment is read; GROWN has the numbers (slowest, largest) for the full size.
SMALL = 1 << 15
GROWN = (100, 30)
#: Maximum seconds of a text; a slower one counts with this time.
LIMIT_SECONDS = 30
DAMAGED = 60

_WORKER = """
import ctypes, gc, json, re, resource, signal, sys, tempfile, time
from pathlib import Path
from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes import parse_text, read_prototypes

def expired(*_):
    raise TimeoutError

signal.signal(signal.SIGALRM, expired)
for line in sys.stdin:
    case = json.loads(line)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what earlier texts left free is not this one's
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    failure = ""
    signal.alarm(int(sys.argv[1]))
    start = time.process_time()
    try:
        if case["suffix"]:
            with tempfile.NamedTemporaryFile("w", suffix=case["suffix"]) as file:
                file.write(case["text"])
                file.flush()
                found = read_prototypes(Path(file.name))
        else:
            found = parse_text(case["text"])
        shown = [str(diagnostic) for diagnostic in found.diagnostics]
    except AscendGraphError:
        found = None  # refused with a message
    except BaseException as error:
        failure = f"{type(error).__name__}: {error}"[:200]
    seconds = time.process_time() - start
    signal.alarm(0)
    peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
    found = shown = None
    print(json.dumps({"seconds": seconds, "peak_mb": peak, "failure": failure}), flush=True)
"""

FRAGMENTS = (
    "REG_OP(A)", "REG_OP(", ".INPUT(x, T)", ".INPUT(", ".ATTR(a, Int, 1)", ".OP_END_FACTORY_REG(A)", "OP_END_FACTORY_REG(A) REG_OP(A)",
    "T, ", "T ", "DT_FLOAT, ", "TensorType(", "TensorType({DT_FLOAT}), ", '"T", ', "Promote(", "::", "ge::", ":",
    "1, ", "1+", "-", "!", "~", "9", "0x", "1e9", "1'", "1 ? 2 : ", "1 < ", "1 && ", "static_cast<", "static_cast<int>(", "(int)",
    "std::numeric_limits<", '"a" ', '"\\"', '\\"', '"', "'", "\\", "\\\n", "R\"x(", 'R"(a)" ', "u8", "L'a'",
    "(", ")", "{", "}", "[", "]", "()", "{}", "({", "})", ";", ",", ".", "<", ">", "/*", "*/", "/**/", "//", "//\n", "// a\n", " *", "\n *",
    " ", "\t", "\n", "\r\n", "\0", "中", "a", "aB9_", "#", "#if a\n", "#if 0\n", "#if 0\n#endif\n", "#ifdef A\n#else\n#endif\n", "#else\n", "#elif 1\n",
    "#endif\n", "#define A B\n", "#define A\n#undef A\n", "#define REG(x) REG_OP(x)\n", "#if (", "#if !", "#if 1+", "# ", "A(", "A(A", "A,", "##", "#x",
    "const int a = 1;", "const ", "const int a = ", "const bool ok = a <= b;", "vector<int> a{1};", "vector<", "constexpr a{", "= ",
    "class A : public OpDef {", "class A : public OpDef {};", "class ", "class A ", "OP_ADD(A);", 'this->Input("x")', 'Input("x"', "Input(", ".DataType({ge::DT_FLOAT})",
    ".DataType(", '.Attr("a").Int(1)', ".Follow(", "[[", '{"op":', '[{"op": "A"}, ', '"input_desc": [',
)  # fmt: skip
#: Text before and after the repeated fragment, and the suffix of the file (none: text).
CONTEXTS = (
    ("", "", ""),
    ("REG_OP(A)\n    .INPUT(x, ", ")\n    .OP_END_FACTORY_REG(A)\n", ""),
    ("REG_OP(A)\n    .INPUT(x, TensorType({", "}))\n    .OP_END_FACTORY_REG(A)\n", ""),
    ("REG_OP(A)\n    .ATTR(a, ListInt, ", ")\n    .OP_END_FACTORY_REG(A)\n", ""),
    ("REG_OP(A)\n    .ATTR(a, Float, 1 + B", ")\n    .OP_END_FACTORY_REG(A)\n", ""),
    ("#define A(x) ", "\nA(y)\nREG_OP(A)\n    .INPUT(x, A(1))\n    .OP_END_FACTORY_REG(A)\n", ""),
    ("#define OPS(x) REG_OP(x).OP_END_FACTORY_REG(x)\nOPS(", ")\n", ""),
    ("#if ", "\nREG_OP(A).OP_END_FACTORY_REG(A)\n#endif\n", ""),
    ("/* ", " */\nREG_OP(A).OP_END_FACTORY_REG(A)\n", ""),
    ('class A : public OpDef {\n    A() { this->Input("x")', "; }\n};\nOP_ADD(A);\n", ".h"),
    ('class A : public OpDef {\n    A() { this->Attr("x").Int(', "); }\n};\nOP_ADD(A);\n", ".h"),
    ("const int a = ", ";\nREG_OP(A)\n    .ATTR(a, Int, a)\n    .INPUT(x, a)\n    .OP_END_FACTORY_REG(A)\n", ""),
    ('[{"op": "A", "input_desc": ', "}]", ".json"),
)


def _tree(line: str, levels: int, width: int) -> str:
    return "".join(f"{line.format(name=f'A{i}', uses=' '.join([f'A{i - 1}'] * width))}\n" for i in range(1, levels))


def trees() -> Iterator[tuple[str, str]]:
    """Yield small texts with a huge expansion."""
    use = "REG_OP(A)\n    .INPUT(x, TensorType({{{0}}}))\n    .ATTR(a, ListInt, {0})\n    .OP_END_FACTORY_REG(A)\n"
    for levels, width in ((8, 8), (60, 2), (5, 40), (3, 1000)):
        last = f"A{levels - 1}"
        yield (
            f"names {width}^{levels}",
            "#define A0 DT_FLOAT,\n" + _tree("#define {name} {uses}", levels, width) + use.format(last),
        )
        yield (
            f"ops {width}^{levels}",
            "#define A0 REG_OP(X).OP_END_FACTORY_REG(X)\n" + _tree("#define {name} {uses}", levels, width) + last,
        )
        yield (
            f"constants {width}^{levels}",
            "const int A0 = 1;\n" + _tree("const int {name} = {uses};", levels, width) + use.format(last),
        )
        conditions = _tree("#define {name} ({uses})", levels, width).replace(" A", " + A")
        yield (
            f"conditions {width}^{levels}",
            f"#define A0 1\n{conditions}#if {last}\nREG_OP(A).OP_END_FACTORY_REG(A)\n#endif\n",
        )
    doubling = "#define D(x) x, x\n"
    yield "arguments", doubling + "REG_OP(A).INPUT(x, " + "D(" * 40 + "T" + ")" * 40 + ").OP_END_FACTORY_REG(A)"
    yield "uses", "#define OP(x) REG_OP(x).OP_END_FACTORY_REG(x)\n" + "OP(Abc)\n" * (SIZE // 8)
    yield (
        "unknown types",
        "".join(f"REG_OP(A{i}).INPUT(x, Tensr{i}).OP_END_FACTORY_REG(A{i})\n" for i in range(SIZE // 60)),
    )
    yield (
        "undecided",
        "".join(
            f"REG_OP(A{i})\n#ifdef B{i}\n.INPUT(x, T)\n#endif\n.OP_END_FACTORY_REG(A{i})\n" for i in range(SIZE // 80)
        ),
    )
    yield (
        "redefined",
        "#ifdef B\n#define T DT_FLOAT\n#else\n#define T DT_INT8\n#endif\n" * (SIZE // 130) + use.format("T") * 2000,
    )
    yield "blank constant", "const bool ok = " + " " * SIZE + "a <= b;\n" + use.format("ok")
    yield (
        "many macros",
        "".join(f"#define R{i} REG_OP\n" for i in range(SIZE // 60)) + "R1(A).OP_END_FACTORY_REG(A)\n" * 10_000,
    )


Case = tuple[str, str, str]


def repeated(number: int, fragment: str, size: int) -> Case:
    """Return name, text and file suffix of a fragment repeated in one context up to a size in bytes."""
    before, behind, suffix = CONTEXTS[number]
    count = max(1, (size - len(before) - len(behind)) // len(fragment.encode()))
    return f"context {number}: {fragment!r}", before + fragment * count + behind, suffix


def damaged(texts: list[str]) -> Iterator[Case]:
    """Yield headers of the wheel's prototypes, with inserted fragments and removed characters."""
    rng = random.Random(11)
    for number in range(DAMAGED):
        parts: list[str] = []
        size = 0
        wanted = rng.choice([SIZE // 100, SIZE // 10, SIZE - 8192])
        while size < wanted:
            parts.append(rng.choice(texts))
            size += len(parts[-1])
        text = "".join(parts)[: SIZE - 4096]
        for _ in range(rng.choice([1, 20, 400])):
            position = rng.randrange(len(text) + 1)
            text = text[:position] + rng.choice(FRAGMENTS) * rng.choice([1, 1, 5]) + text[position + rng.randrange(6) :]
        yield f"damaged {number}", text[:SIZE], ""


class _Worker:
    """Process that reads texts; it is restarted when it dies."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def read(self, text: str, suffix: str) -> dict[str, Any]:
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _WORKER, str(LIMIT_SECONDS)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"text": text, "suffix": suffix}) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        if answer:
            return json.loads(answer)  # type: ignore[no-any-return]
        process.wait()
        self.process = None
        return {"seconds": 0.0, "peak_mb": 0.0, "failure": f"the process ended with {process.returncode}"}

    def close(self) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait()


def main() -> dict[str, Any]:
    """Read all texts and show the slowest."""
    worker = _Worker()
    found: list[dict[str, Any]] = []

    def read(case: Case) -> dict[str, Any]:
        name, text, suffix = case
        found.append({"name": name, "kb": len(text.encode(errors="replace")) / 1024, **worker.read(text, suffix)})
        return found[-1]

    small = {(n, fragment): read(repeated(n, fragment, SMALL)) for n in range(len(CONTEXTS)) for fragment in FRAGMENTS}
    grown: dict[tuple[int, str], None] = {}
    for key, count in zip(("seconds", "peak_mb"), GROWN, strict=True):
        grown |= dict.fromkeys(sorted(small, key=lambda case: -small[case][key])[:count])
    for number, fragment in grown:
        read(repeated(number, fragment, SIZE))
    for name, text in trees():
        read((name, text, ""))
    for case in damaged(wheel_prototypes()):
        read(case)
    worker.close()
    table = Table(title="The slowest, the largest and those that failed", title_justify="left")
    for heading in ("text", "KB", "s", "peak MB", "failure"):
        table.add_column(heading, justify="left" if heading in ("text", "failure") else "right")
    shown = {id(case): case for case in sorted(found, key=lambda case: -case["seconds"])[:8]}
    shown |= {id(case): case for case in sorted(found, key=lambda case: -case["peak_mb"])[:4]}
    shown |= {id(case): case for case in found if case["failure"]}
    for case in shown.values():
        table.add_row(
            case["name"], f"{case['kb']:.0f}", f"{case['seconds']:.2f}", f"{case['peak_mb']:.0f}", case["failure"]
        )
    Console(width=120).print(table)
    return {
        "texts": len(found),
        "worst_s": round(max(case["seconds"] for case in found), 2),
        "worst_ms_per_kb": round(max(1000 * case["seconds"] / max(case["kb"], 16) for case in found), 2),
        "peak_mb": round(max(case["peak_mb"] for case in found), 1),
        "crashes": sum(bool(case["failure"]) for case in found),
    }


if __name__ == "__main__":
    run(main)
