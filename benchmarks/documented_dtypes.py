"""Dtypes and SoCs in the public documents of aclnn functions, compared with the host's tables.

The tables are ``dtypes.txt`` and ``unsupported_socs.txt`` in ``ascend_graph/host/runtime/aclnn_functions``, by which the host
refuses other dtypes and SoCs.

Give the checkouts of the operator repositories (https://gitcode.com/cann: ops-nn, ops-transformer, ops-math, ops-cv), or bare
ones. A document is read if it has the table of parameters with the column of dtypes. A parameter whose cell contains anything
but dtypes ("as x", notes on one hardware) has no rule, nor has a mistaken one (``SLIPS``). If hardware differs, the document's
union counts. A function lacks a SoC if the document says so of its series, in the section before the function's.

    python benchmarks/documented_dtypes.py ops-nn ops-transformer ops-math ops-cv [--write]
"""

from __future__ import annotations

import argparse
import html
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from _common import run

from ascend_graph.host.runtime.aclnn_functions.dtypes import TABLE, documented_dtypes, line_of
from ascend_graph.host.runtime.aclnn_functions.table import functions
from ascend_graph.host.runtime.aclnn_functions.unsupported_socs import TABLE as PRODUCTS_TABLE
from ascend_graph.host.runtime.aclnn_functions.unsupported_socs import lacking_processors
from ascend_graph.prototypes import DataType

#: Names of the series of the host's SoCs in the section on hardware.
SERIES = {
    "Ascend910B1": "Atlas A2 \u8bad\u7ec3",
    "Ascend910_9391": "Atlas A3 \u8bad\u7ec3",
    "Ascend950PR_9589": "Ascend 950",
    "Ascend310P3": "Atlas \u63a8\u7406\u7cfb\u5217",
}
PRODUCTS = re.compile(r"\u4ea7\u54c1\u652f\u6301\u60c5\u51b5(.*?)\n## ", re.S)
REFUSED = re.compile(r"\u4e0d\u652f\u6301|\|\s*[\u00d7xX]\s*\|")
COLUMN, PARAMETER = "数据类型", "参数"
#: GE's names of dtypes that documents write differently.
NAMES = {"FLOAT32": "FLOAT", "BFLOAT16": "BF16", "HIF8": "HIFLOAT8"}
TENSORS = ("aclTensor", "aclTensorList")
#: Cells that contradict torch_npu's own documents or the rest of the same document; they give no rule.
SLIPS = {
    ("aclnnNsaCompressWithCache", "outputCache"): "a cache of what is compressed, and INT64",
    ("aclnnDynamicQuantV2", "groupIndex"): "ends of groups, and floats",
    ("aclnnGroupedMatmulFinalizeRoutingV2", "scale"): "only that of weights of 4 bits",
    ("aclnnGroupedMatmulFinalizeRoutingV3", "scale"): "only that of weights of 4 bits",
    ("aclnnDualLevelQuantMatmulWeightNz", "x2"): "torch_npu hands over the bytes, INT8, of two numbers each",
    ("aclnnBlockSparseAttentionGrad", "blockSparseMask"): "torch_npu's gradient hands over the forward's, INT8",
    # torch_npu's own tests for devices pass one of FLOAT16, which nothing is written to without softmaxLseFlag.
    **{(f"aclnnFusedInferAttentionScoreV{n}", "softmaxLse"): "only with softmaxLseFlag" for n in (2, 3, 4)},
}

#: SoCs that torch_npu's own document of the operator has, contrary to the function's document.
HAVING = {("aclnnQuantLightningIndexer", name) for name in ("Ascend910B1", "Ascend910_9391")}


def git(repository: Path, *arguments: str) -> str:
    """Return git's output for a repository."""
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def documents(repository: Path, symbols: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the functions that have documents, with the documents."""
    for path in git(repository, "ls-tree", "-r", "--name-only", "HEAD").splitlines():
        if not path.endswith(".md") or "/docs/" not in path:
            continue
        for stem in Path(path).stem.split("&"):  # aclnnEq&aclnnInplaceEq.md
            if stem.strip() in symbols:
                yield stem.strip(), git(repository, "show", f"HEAD:{path}")


def cells(row: str, kind: str) -> list[str]:
    """Return the texts of a table's row."""
    found = re.findall(rf"<{kind}[^>]*>(.*?)</{kind}>", row, flags=re.S)
    return [html.unescape(re.sub(r"<[^>]+>", "", re.sub(r"<sup>.*?</sup>", "", c, flags=re.S))).strip() for c in found]


def plain(name: str) -> str:
    """Return a parameter's name without the suffixes that declarations may add."""
    return re.sub(r"(Optional|Ref|Out)$", "", name).lower()


def read(symbol: str, document: str) -> dict[str, frozenset[DataType]]:
    """Return the dtypes of a function's tensors by the parameter's name in the host's table."""
    start = re.search(rf"##\s*{symbol}GetWorkspaceSize\s*\n", document)
    declared = functions()[symbol.removeprefix("aclnn")].parameters
    known = {plain(p.name): p.name for p in declared if p.type in TENSORS}
    for table in re.findall(r"<table.*?</table>", document[start.end() if start else 0 :], flags=re.S):
        head = cells(table, "th")
        if not head or PARAMETER not in head[0] or COLUMN not in head:
            continue
        found: dict[str, frozenset[DataType]] = {}
        for row in re.findall(r"<tr>(.*?)</tr>", table.split("<tbody>")[-1], flags=re.S):
            texts = cells(row, "td")
            if "span=" in row or len(texts) != len(head):
                continue
            name = known.get(plain(re.split(r"[\uff08(]", texts[0])[0].strip()))
            dtypes = [NAMES.get(d, d) for d in re.split(r"[\u3001,\uff0c\s]+", texts[head.index(COLUMN)]) if d]
            if name is None or not dtypes or (symbol, name) in SLIPS:
                continue
            if all(d in DataType.__members__ for d in dtypes):
                found[name] = frozenset(DataType[d] for d in dtypes)
        return found
    return {}


def lacking(symbol: str, document: str) -> frozenset[str]:
    """Return the host's SoCs that, according to a document, do not have its function."""
    section = PRODUCTS.search(document)
    lines = [line for line in section[1].splitlines() if "<term>" in line] if section else []
    if all(REFUSED.search(line) for line in lines):
        return frozenset()  # a function that no SoC has is a slip of the document
    return frozenset(
        name
        for name, series in SERIES.items()
        for line in lines
        if series in line and REFUSED.search(line) and (symbol, name) not in HAVING
    )


def main() -> dict[str, object]:
    """Compare the documents with the tables, or write the tables anew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repositories", nargs="*", type=Path, help="without any the file alone is counted")
    parser.add_argument("--write", action="store_true", help="write the rules; by hand nothing is to be added")
    parser.add_argument(
        "--only", help="the functions to read, with commas between them; what the files have of others is kept"
    )
    options = parser.parse_args()
    if not options.repositories:
        rules = documented_dtypes()
        counted = {"functions": len(rules), "parameters": sum(map(len, rules.values()))}
        return {**counted, "not_on_every_processor": len(lacking_processors())}
    known = {f.symbol for f in functions().values()}
    symbols = known & set(options.only.split(",")) if options.only else known
    pages = {symbol: text for repository in options.repositories for symbol, text in documents(repository, symbols)}
    read_rules = {symbol: read(symbol, text) for symbol, text in sorted(pages.items())}
    rules = {symbol: found for symbol, found in read_rules.items() if found}
    rules |= {s: found for s, found in documented_dtypes().items() if options.only and s not in symbols}
    differing = sorted(
        s for s in rules.keys() | documented_dtypes().keys() if rules.get(s) != documented_dtypes().get(s)
    )
    for symbol in differing:
        print(f"- {line_of(symbol, documented_dtypes().get(symbol, {}))}\n+ {line_of(symbol, rules.get(symbol, {}))}")
    refused = {symbol: found for symbol, text in sorted(pages.items()) if (found := lacking(symbol, text))}
    refused |= {s: found for s, found in lacking_processors().items() if options.only and s not in symbols}
    moved = sorted(
        s for s in refused.keys() | lacking_processors().keys() if refused.get(s) != lacking_processors().get(s)
    )
    for symbol in moved:
        print(
            f"{symbol}: {sorted(lacking_processors().get(symbol, ()))} in the file, {sorted(refused.get(symbol, ()))}"
        )
    if options.write:
        kept = [line for line in PRODUCTS_TABLE.read_text().splitlines() if line.startswith("#")]
        lines = (f"{symbol}: {' '.join(sorted(names))}" for symbol, names in sorted(refused.items()))
        PRODUCTS_TABLE.write_text("\n".join([*kept, "", *lines, ""]))
        notes = [line for line in TABLE.read_text().splitlines() if line.startswith("#")]
        TABLE.write_text("\n".join([*notes, "", *(line_of(s, found) for s, found in sorted(rules.items())), ""]))
    parameters = sum(map(len, rules.values()))
    return {
        "documents": len(pages),
        "functions": len(rules),
        "parameters": parameters,
        "not_on_every_processor": len(refused),
        "differing": len(differing) + len(moved),
    }


if __name__ == "__main__":
    run(main)
