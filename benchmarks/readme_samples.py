"""Third-party samples run by the commands of their own READMEs, sources unmodified, on the host runtime.

    .venv/bin/python benchmarks/readme_samples.py CHECKOUT --under examples --naming dav-2201 'Atlas A2' --set ASC_ARCH=dav-2201 SCENARIO_NUM=1

A sample is a directory with a CMakeLists.txt and a README.md that has every one (``--naming``: any one) of these words. Its
commands are the first block of code there that builds with cmake and then runs something; ``--set`` gives the variables that
the README leaves to its reader. The checkout is copied first, and nothing is written to it. A sample ``passed`` if its
commands end with status 0 and print no line that reports a failure. The output has a line for each sample, and as the last
line JSON: ``samples, passed, failed, no_commands``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ascend_graph.host import host_environment

_BLOCK = re.compile(r"^[ \t]*```[^\n]*\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL)
_BUILDS = re.compile(r"\bcmake\s+\S")
_RUNS = re.compile(r"\./|\bpython3\b|\bbash\s+run")
_COMMENT = re.compile(r"(?:^|\s)#.*$", re.MULTILINE)
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")
_SAYS_SO = re.compile(r"\bfail(?:ed)?\b|\[ERROR\]", re.IGNORECASE)


def samples(root: Path, words: Sequence[str]) -> list[Path]:
    """Return the directories with a build file and a README that has one of the words; without words, all with both.

    >>> samples(Path("."), ["no such device"])
    []
    """
    directories = sorted(path.parent for path in root.rglob("CMakeLists.txt") if (path.parent / "README.md").is_file())
    texts = {path: (path / "README.md").read_text(errors="replace") for path in directories}
    return [path for path, text in texts.items() if not words or any(word in text for word in words)]


def commands(text: str, values: Mapping[str, str]) -> str | None:
    """Return a README's first code block that builds and runs a sample, with its variables' values, or None.

    >>> commands("```bash\\ncmake -B build -DARCH=$ARCH # once\\n./build/demo $N\\n```", {"ARCH": "dav-2201"})
    'cmake -B build -DARCH=dav-2201\\n./build/demo $N'
    """
    for block in _BLOCK.findall(text):
        if _BUILDS.search(block) and _RUNS.search(block):
            lines = (line.strip() for line in _COMMENT.sub("", block).splitlines())
            return _VARIABLE.sub(lambda found: values.get(found[1], found[0]), "\n".join(filter(None, lines)))
    return None


def outcome(sample: Path, values: Mapping[str, str], log: Path, limit: float) -> str:
    """Run a sample's commands; return ``passed``, ``no commands``, or the error."""
    script = commands((sample / "README.md").read_text(errors="replace"), values)
    if script is None:
        return "no commands"
    with log.open("w") as file:
        process = subprocess.Popen(
            ["bash", "-e", "-c", script],
            cwd=sample,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=host_environment(os.environ, None),
            start_new_session=True,
        )
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return f"did not end in {limit:g} seconds"
    said = _SAYS_SO.search(log.read_text(errors="replace"))
    return f"ended with status {status}" if status else "passed" if said is None else f"says {said[0]!r}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Run samples by the commands of their READMEs.")
    parser.add_argument("checkout", nargs="?", type=Path)
    parser.add_argument("--under", type=Path, default=Path(), metavar="DIR", help="samples below this directory of it")
    parser.add_argument("--naming", nargs="*", default=[], metavar="WORD", help="one of these stands in the README")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="variables of the commands")
    parser.add_argument("--work", type=Path, help="where the copy and the logs go; default: a new directory in /tmp")
    parser.add_argument("--limit", type=float, default=900, metavar="S", help="for one sample")
    arguments = parser.parse_args()
    if arguments.checkout is None:
        print('not tried: name a checkout with samples\n{"samples": 0}')
        return 0
    values = dict(pair.partition("=")[::2] for pair in arguments.set)
    work = arguments.work or Path(tempfile.mkdtemp(prefix="readme-samples-"))
    copy = work / "copy"
    shutil.copytree(arguments.checkout, copy, ignore=shutil.ignore_patterns(".git", "build"), dirs_exist_ok=True)
    counts: Counter[str] = Counter()
    for number, sample in enumerate(samples(copy / arguments.under, arguments.naming)):
        found = outcome(sample, values, work / f"{number:03}.log", arguments.limit)
        counts[found if found in ("passed", "no commands") else "failed"] += 1
        print(f"{number:03} {sample.relative_to(copy)}: {found}", flush=True)
    print(f"logs: {work}")
    names = ("passed", "failed", "no commands")
    summary = {"samples": counts.total(), **{name.replace(" ", "_"): counts[name] for name in names}}
    print(json.dumps(summary))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
