"""Conversion of a CUDA build of torch to one that loads without CUDA, for testing versions without a CPU build.

torch_npu aborts next to a CUDA build. This removes the CUDA libraries. Small libraries of the same names, whose functions
do nothing, provide the symbols that the rest links from them and from NVIDIA's. The compiled CPU code of torch is unchanged.
It is only for tests: users of torch_npu install PyTorch's CPU build.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_CUDA = re.compile(r"lib(torch_cuda\w*|c10_cuda|caffe2_nvrtc|torch_nvshmem|c10d_cuda_test)\.so")
_SYSTEM = re.compile(r"(lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|gomp|util)(?=[.-])|ld-linux)")
_SYSTEM_VERSION = re.compile(r"(GLIBC|GCC|CXXABI|GLIBCXX|GOMP|OMP|LIBGOMP|OACC)")

_PREAMBLE = """
typedef void* pointer;
extern void* memset(void*, int, unsigned long);
extern unsigned long malloc_usable_size(void*);
__attribute__((aligned(65536))) static char nothing[65536];
static pointer no_function(void) { return 0; }
static pointer no_functions[66] = {0, 0, [2 ... 65] = no_function};
"""


@dataclass(frozen=True, slots=True)
class _Symbol:
    name: str
    version: str
    kind: str
    size: int
    weak: bool
    defined: bool


def _symbols(library: Path) -> Iterator[_Symbol]:
    output = subprocess.run(["readelf", "--dyn-syms", "-W", library], check=True, capture_output=True, text=True).stdout
    for line in output.splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[0].rstrip(":").isdigit():
            name, _, version = fields[7].partition("@")
            yield _Symbol(
                name, version.lstrip("@"), fields[3], int(fields[2], 0), fields[4] == "WEAK", fields[6] != "UND"
            )


def _needed(library: Path) -> list[str]:
    output = subprocess.run(["readelf", "-dW", library], check=True, capture_output=True, text=True).stdout
    return re.findall(r"NEEDED.*\[(.*)\]", output)


def _system_symbols() -> set[str]:
    """Return the symbols that the compiler's own libraries define."""
    names = ("libstdc++.so.6", "libgcc_s.so.1", "libc.so.6", "libm.so.6", "libgomp.so.1")
    paths = (
        Path(
            subprocess.run(["g++", f"-print-file-name={n}"], check=True, capture_output=True, text=True).stdout.strip()
        )
        for n in names
    )
    return {s.name for p in paths if p.is_absolute() for s in _symbols(p) if s.defined}


def _definition(name: str, kind: str, size: int) -> str:
    """Return C code that defines a non-working symbol, sufficient for loading and importing torch."""
    if name.startswith("_ZTI"):  # pybind11 looks types up by their names
        return (
            f"extern pointer _ZTVN10__cxxabiv117__class_type_infoE[];\n"
            f'pointer {name}[2] = {{_ZTVN10__cxxabiv117__class_type_infoE + 2, "{name[4:]}"}};'
        )
    if name.startswith("_ZTV"):
        slots = max(size, 256) // 8 - 2
        return f"pointer {name}[{slots + 2}] = {{0, 0, {', '.join(['no_function'] * slots)}}};"
    if kind == "TLS":
        return f"__thread char {name}[{size}];"
    if kind == "OBJECT" or name.startswith(("_ZTS", "_ZTT")):
        return f"__attribute__((aligned(16))) char {name}[{max(size, 64)}];"
    if re.search(r"7OptionsC[12]Eb", name):  # the constructor of a default argument, which is destroyed at exit
        return f"void {name}(pointer* self) {{ memset(self, 0, malloc_usable_size(self)); *self = no_functions + 2; }}"
    if re.search(r"7Options6createE", name):  # returns a smart pointer, through a hidden argument
        return f"pointer {name}(pointer* result) {{ *result = 0; return result; }}"
    if name.startswith("_Z") and "get_gil_checker" in name:
        return f"pointer {name}(void) {{ return nothing; }}"
    return f"long {name}(void) {{ return {100 if re.match(r'(cuda|cu[A-Z]|nvrtc)', name) else 0}; }}"


def remove_cuda(site: Path) -> list[str]:
    """Replace the CUDA libraries of the torch unpacked in ``site``; return the names of the replacements.

    A torchvision next to it keeps its operators: the replacements have what its library links, too.
    """
    libraries = site / "torch/lib"
    places = (*libraries.glob("*.so*"), *site.glob("torch/*.so"), *site.glob("torchvision/_C*.so"))
    present = [p for p in sorted(places) if not p.is_symlink()]
    removed = [p for p in present if _CUDA.match(p.name)]
    kept = [p for p in present if p not in removed]
    kinds = {s.name: s for p in removed for s in _symbols(p) if s.defined}
    used = [s for p in kept for s in _symbols(p)]
    defined = {s.name for s in used if s.defined} | _system_symbols()
    names = {p.name for p in kept}
    missing = list(dict.fromkeys(n for p in kept for n in _needed(p) if n not in names and not _SYSTEM.match(n)))
    if not missing:
        return []
    # A symbol with a version is of the library that has the version's name; the others are torch's own.
    own = "libtorch_cuda.so" if "libtorch_cuda.so" in missing else missing[0]
    homes: dict[str, dict[str, set[str]]] = {name: defaultdict(set) for name in missing}
    for s in used:
        if s.defined or s.weak or s.name in defined or not s.name or _SYSTEM_VERSION.match(s.version):
            continue
        if not s.version and s.name.startswith(("Py", "_Py")):
            continue
        home = next((m for m in missing if s.version and m.startswith(s.version.partition(".so")[0])), own)
        homes[home][s.version].add(s.name)
    for path in removed:
        path.unlink()
    for name in missing:
        _write(libraries / name, homes[name], kinds)
    version = site / "torch/version.py"
    text = re.sub(r"(?m)^(cuda\b.*?) = '.*'", r"\1 = None", version.read_text())
    version.write_text(re.sub(r"(__version__ = '[^'+]+)\+cu\w+'", r"\1+cpu'", text))
    # As a CPU build is installed: older wheels of torch_npu require that one by its name.
    for information in site.glob("torch-*.dist-info"):
        metadata = information / "METADATA"
        lines = re.sub(r"(?m)^(Version: [^+\n]+)(\+cu\w+)?$", r"\1+cpu", metadata.read_text(), count=1)
        metadata.write_text(re.sub(r"(?m)^Requires-Dist: (nvidia|cuda|triton|pytorch-triton).*\n", "", lines))
        information.rename(site / re.sub(r"(-[^-+]+)(\+cu\w+)?\.dist-info", r"\1+cpu.dist-info", information.name))
    # Kernels in Python that take the place of CUDA's ask for those, which are gone.
    overrides = site / "torch/_native/__init__.py"
    if overrides.exists():
        overrides.write_text(overrides.read_text().replace("registry._register_all_overrides()", "pass"))
    _cmake_without_cuda(site / "torch/share/cmake")
    return missing


#: Block of torch's CMake files, with the condition that CMake's own configuration left there.
_CMAKE_CUDA = re.compile(
    r"(?m)^(\s*if\()ON(\)\s*\n(?:\s*#.*\n)*\s*(?:set\(CAFFE2_USE_CUDA ON\)|if\(MSVC\)\s*\n\s*find_library\(CAFFE2_NVRTC))"
)


def _cmake_without_cuda(directory: Path) -> None:
    """Edit ``find_package(Torch)`` to act as in a CPU build: it neither searches for CUDA nor links its libraries."""
    for path in (directory / "Caffe2/Caffe2Config.cmake", directory / "Torch/TorchConfig.cmake"):
        if path.exists():
            path.write_text(_CMAKE_CUDA.sub(r"\1OFF\2", path.read_text()))
    names = r"torch::cudart|torch_cuda_library|c10_cuda|torch_cuda|torch_nvshmem"
    for path in directory.glob("Caffe2/Caffe2Targets*.cmake"):
        text = re.sub(rf'(?<=[;"])(?:{names})(?=[;"])', "", path.read_text())
        path.write_text(re.sub(rf"(?m)^list\(APPEND _cmake_import_check_\w+ (?:{names})\b.*\n", "", text))


def _write(path: Path, versions: dict[str, set[str]], kinds: dict[str, _Symbol]) -> None:
    lines = [_PREAMBLE]
    for symbols in versions.values():
        for symbol in sorted(symbols):
            known = kinds.get(symbol)
            lines.append(_definition(symbol, known.kind if known else "FUNC", known.size if known else 0))
    script = "\n".join(f"{v} {{ global: {'; '.join(sorted(s))}; }};" for v, s in versions.items() if v)
    path.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        source, map_file = Path(directory) / "stub.c", Path(directory) / "stub.map"
        source.write_text("\n".join(lines))
        map_file.write_text(script)
        command = ["gcc", "-w", "-fno-builtin", "-shared", "-fPIC", "-nostdlib", f"-Wl,-soname,{path.name}"]
        options = [f"-Wl,--version-script={map_file}"] if script else []
        subprocess.run([*command, *options, source, "-o", path], check=True)
