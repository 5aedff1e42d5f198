"""What dtypes the public documents of aclnn functions name, against ``ascend_graph/host/opapi/dtypes.txt``, by which the host refuses
the others.

Give the checkouts of the operator repositories (https://gitcode.com/cann: ops-nn, ops-transformer, ops-math, ops-cv), or bare ones.
A document is read where it has the table of parameters with the column of dtypes; a parameter whose cell holds anything but dtypes
("as x", notes on one product) has no rule, nor has one that is a slip (``SLIPS``). Where products differ, the document's union counts.

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

from ascend_graph.host.opapi.dtypes import TABLE, documented_dtypes, line_of
from ascend_graph.host.opapi.table import functions
from ascend_graph.prototypes import DataType

COLUMN, PARAMETER = "数据类型", "参数"
#: Names of dtypes in documents that GE writes otherwise.
NAMES = {"FLOAT32": "FLOAT", "BFLOAT16": "BF16", "HIF8": "HIFLOAT8"}
TENSORS = ("aclTensor", "aclTensorList")
#: Cells that torch_npu's own documents, or the rest of the same document, are against; they give no rule.
SLIPS = {
    ("aclnnNsaCompressWithCache", "outputCache"): "a cache of what is compressed, and INT64",
    ("aclnnDynamicQuantV2", "groupIndex"): "ends of groups, and floats",
    ("aclnnGroupedMatmulFinalizeRoutingV2", "scale"): "only that of weights of 4 bits",
    ("aclnnGroupedMatmulFinalizeRoutingV3", "scale"): "only that of weights of 4 bits",
    # torch_npu's own tests for devices pass one of FLOAT16, which nothing is written to without softmaxLseFlag.
    **{(f"aclnnFusedInferAttentionScoreV{n}", "softmaxLse"): "only with softmaxLseFlag" for n in (2, 3, 4)},
}


def git(repository: Path, *arguments: str) -> str:
    """What git prints of a repository."""
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def documents(repository: Path, symbols: set[str]) -> Iterator[tuple[str, str]]:
    """The functions among those that have documents, and these."""
    for path in git(repository, "ls-tree", "-r", "--name-only", "HEAD").splitlines():
        if not path.endswith(".md") or "/docs/" not in path:
            continue
        for stem in Path(path).stem.split("&"):  # aclnnEq&aclnnInplaceEq.md
            if stem.strip() in symbols:
                yield stem.strip(), git(repository, "show", f"HEAD:{path}")


def cells(row: str, kind: str) -> list[str]:
    """The texts of a table's row."""
    found = re.findall(rf"<{kind}[^>]*>(.*?)</{kind}>", row, flags=re.S)
    return [html.unescape(re.sub(r"<[^>]+>", "", re.sub(r"<sup>.*?</sup>", "", c, flags=re.S))).strip() for c in found]


def plain(name: str) -> str:
    """A parameter's name without what one declaration has and another has not."""
    return re.sub(r"(Optional|Ref|Out)$", "", name).lower()


def read(symbol: str, document: str) -> dict[str, frozenset[DataType]]:
    """The dtypes of a function's tensors by the parameter's name in the host's table."""
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


def main() -> dict[str, object]:
    """Compare, or write the file anew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repositories", nargs="*", type=Path, help="without any the file alone is counted")
    parser.add_argument("--write", action="store_true", help="write the rules; by hand nothing is to be added")
    options = parser.parse_args()
    if not options.repositories:
        rules = documented_dtypes()
        return {"functions": len(rules), "parameters": sum(map(len, rules.values()))}
    symbols = {f.symbol for f in functions().values()}
    pages = {symbol: text for repository in options.repositories for symbol, text in documents(repository, symbols)}
    read_rules = {symbol: read(symbol, text) for symbol, text in sorted(pages.items())}
    rules = {symbol: found for symbol, found in read_rules.items() if found}
    differing = sorted(
        s for s in rules.keys() | documented_dtypes().keys() if rules.get(s) != documented_dtypes().get(s)
    )
    for symbol in differing:
        print(f"- {line_of(symbol, documented_dtypes().get(symbol, {}))}\n+ {line_of(symbol, rules.get(symbol, {}))}")
    if options.write:
        notes = [line for line in TABLE.read_text().splitlines() if line.startswith("#")]
        TABLE.write_text("\n".join([*notes, "", *(line_of(s, found) for s, found in rules.items()), ""]))
    parameters = sum(map(len, rules.values()))
    return {"documents": len(pages), "functions": len(rules), "parameters": parameters, "differing": len(differing)}


if __name__ == "__main__":
    run(main)
