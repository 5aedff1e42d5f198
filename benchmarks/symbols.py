"""Symbols that torch_npu's wheels link from CANN's libraries, against those that the host runtime's libraries export.

``python benchmarks/symbols.py`` (``make symbols``) checks every wheel in ``benchmarks/data/cann_symbols.json``;
it needs neither torch nor torch_npu. A symbol that a wheel links and no library of ours exports is an error: the wheel
would not load. Names that a wheel contains as text are looked up at run time. If such a name is missing, torch_npu's own
fallback applies, so these are only counted.

``--download VERSION…`` downloads wheels (for both machines) and reads them, ``--wheels PATH…`` reads wheels or directories
with an installed torch_npu; with ``--record`` they go into the data. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TREE = Path(__file__).resolve().parents[1]
DATA = TREE / "benchmarks/data/cann_symbols.json"
PLACE = TREE / "build/versions/torch_npu"
MACHINES = ("x86_64", "aarch64")

#: Symbols of the system, of Python and of PyTorch: a wheel's other undefined symbols are CANN's.
_SYSTEM_VERSION = re.compile(r"(GLIBC|GCC|CXXABI|GLIBCXX|GOMP)")
_SYSTEM = re.compile(r"(dl[a-z]+|pthread_\w+|sem_\w+|shm_\w+|_+[a-z]\w*|(?!acl|hal|rt)(?!\w+_s$)[a-z0-9_]+)$")
_TORCH = re.compile(
    r"(_?Py|ParameterClass$|THP?[A-Z]|_ZTH|_ZTW)|_Z(N|NK|TI|TV|TS|TT|St|ls|rs|plus|eq|NSt|NKSt)?.*?(2at|3c10|4c10d|5torch|6caffe2|8pybind11|9libkineto|16getPyInterpreter|THP|TH[A-Z])"
)
_STANDARD = re.compile(
    r"_Z(N?K?[RO]?S[a-z]|T[ISV]S|T[ISV]N?St|N?K?9__gnu_cxx|T[ISV]N10__cxxabiv1|nw|na|dl|da|St|TVN10__cxxabiv1)"
)
_LOOKED_UP = re.compile(rb"\0((?:acl(?:rt|mdl|op|prof|tdt)?|Hccl|Msprof|hal|rt)[A-Z][A-Za-z0-9]{3,60})(?=\0)")


@dataclass(frozen=True, slots=True)
class Wheel:
    """Wheel with the symbols that it needs from CANN."""

    name: str
    linked: frozenset[str]
    looked_up: frozenset[str]


def dynamic_symbols(library: Path) -> Iterator[tuple[str, str, bool, bool]]:
    """Yield each dynamic symbol's name, version, whether it is weak and whether it is defined here."""
    output = subprocess.run(["readelf", "--dyn-syms", "-W", library], capture_output=True, text=True, check=True).stdout
    for line in output.splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[0].rstrip(":").isdigit():
            name, _, version = fields[7].partition("@")
            yield name, version.lstrip("@"), fields[4] == "WEAK", fields[6] != "UND"


def exported(directory: Path) -> frozenset[str]:
    """Return the symbols that the libraries of a directory define."""
    return frozenset(n for path in directory.glob("*.so") for n, _, _, here in dynamic_symbols(path) if here)


def is_canns(symbol: str) -> bool:
    """Return whether an undefined symbol of torch_npu is CANN's: it belongs to none of the other known libraries."""
    return not (_SYSTEM.match(symbol) or _TORCH.match(symbol) or _STANDARD.match(symbol))


def read_libraries(name: str, libraries: Iterable[Path]) -> Wheel:
    """Return the CANN symbols that torch_npu's libraries need, without those loaded only if ATB is installed."""
    undefined: set[str] = set()
    defined: set[str] = set()
    texts: set[str] = set()
    for path in libraries:
        for symbol, version, weak, here in dynamic_symbols(path):
            if here:
                defined.add(symbol)
            elif not weak and symbol and not _SYSTEM_VERSION.match(version):
                undefined.add(symbol)
        texts |= {m[1].decode() for m in _LOOKED_UP.finditer(path.read_bytes())}
    linked = frozenset(s for s in undefined - defined if is_canns(s))
    return Wheel(name, linked, frozenset(texts - linked))


def read(path: Path) -> Wheel:
    """Return the CANN symbols that a wheel, or a directory with an installed torch_npu, needs."""

    def ours(name: str) -> bool:
        return bool(re.search(r"\.so(\.\d+)*$", name)) and "atb" not in Path(name).name

    if path.is_dir():
        version = re.search(r"__version__ = '([^']+)'", (path / "torch_npu/version.py").read_text())
        files = (p for p in (path / "torch_npu").rglob("*.so*") if ours(p.name) and not p.is_symlink())
        return read_libraries(version[1] if version else str(path), files)
    with tempfile.TemporaryDirectory() as directory, zipfile.ZipFile(path) as wheel:
        files = [Path(wheel.extract(name, directory)) for name in wheel.namelist() if ours(name)]
        machine = next(m for m in MACHINES if m in path.name)
        return read_libraries(f"{path.name.split('-')[1]} {machine}", files)


def download(version: str) -> list[Path]:
    """Return the wheels of a version, one for each machine, from pip's index or from the last download."""
    found = []
    for machine in MACHINES:
        wheels = list(PLACE.glob(f"torch_npu-{version}-*{machine}.whl"))
        if not wheels:
            platforms = [o for n in (28, 17) for o in ("--platform", f"manylinux_2_{n}_{machine}")]
            options = ["--no-deps", "--only-binary=:all:", "--python-version=3.11", *platforms, "-d", str(PLACE)]
            subprocess.run(
                [sys.executable, "-m", "pip", "download", "-q", *options, f"torch_npu=={version}"], check=True
            )
            wheels = list(PLACE.glob(f"torch_npu-{version}-*{machine}.whl"))
        found += wheels
    return found


def _order(name: str) -> tuple[list[int], str]:
    version, _, machine = name.partition(" ")
    return [int(n) for n in re.findall(r"\d+", version)], machine


def load() -> list[Wheel]:
    """Return the wheels in the data."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: {"linked": set(), "looked_up": set()})
    for group in json.loads(DATA.read_text()):
        for name in group["wheels"]:
            found[name][group["how"]] |= set(group["symbols"])
    return [Wheel(n, frozenset(e["linked"]), frozenset(e["looked_up"])) for n, e in found.items()]


def store(wheels: Iterable[Wheel]) -> None:
    """Write the data, with symbols grouped by the wheels that need them."""
    users: dict[tuple[str, str], list[str]] = defaultdict(list)
    for wheel in sorted(wheels, key=lambda w: _order(w.name)):
        for how, symbols in (("linked", wheel.linked), ("looked_up", wheel.looked_up)):
            for symbol in symbols:
                users[how, symbol].append(wheel.name)
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for (how, symbol), names in sorted(users.items()):
        groups[how, tuple(names)].append(symbol)
    entries = [{"how": how, "wheels": names, "symbols": symbols} for (how, names), symbols in groups.items()]
    DATA.write_text("[\n" + ",\n".join(json.dumps(e) for e in entries) + "\n]\n")


def missing(wheels: Sequence[Wheel], names: frozenset[str]) -> Mapping[str, list[str]]:
    """Return the symbols that no library of ours exports, with the wheels that link them."""
    found: dict[str, list[str]] = defaultdict(list)
    for wheel in wheels:
        for symbol in sorted(wheel.linked - names):
            found[symbol].append(wheel.name)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Check what torch_npu's wheels link.")
    parser.add_argument("--wheels", nargs="+", type=Path, default=[])
    parser.add_argument("--download", nargs="+", default=[], metavar="VERSION")
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    from ascend_graph.environment import toolkit_directory

    names = exported(toolkit_directory() / "lib64")
    paths = [*arguments.wheels, *(p for version in arguments.download for p in download(version))]
    wheels = [read(path) for path in paths] or load()
    if arguments.record:
        known = {w.name: w for w in load()} if DATA.exists() else {}
        store((known | {w.name: w for w in wheels}).values())
    print("| torch_npu | linked | missing | looked up | of these exported |\n|---|---|---|---|---|")
    for wheel in sorted(wheels, key=lambda w: _order(w.name)):
        counts = len(wheel.linked), len(wheel.linked - names), len(wheel.looked_up), len(wheel.looked_up & names)
        print(f"| {wheel.name} | {' | '.join(map(str, counts))} |")
    absent = missing(wheels, names)
    for symbol, users in absent.items():
        print(f"error: no library of the host runtime exports {symbol}, which torch_npu {', '.join(users)} links")
    print(json.dumps({"wheels": len(wheels), "missing": len(absent)}))
    return int(bool(absent))


if __name__ == "__main__":
    raise SystemExit(main())
