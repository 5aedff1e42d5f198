"""Compilation of a source once for each kind of core, as the device compiler does it, joined into one object.

Most kernels query their core at run time, and one compilation serves both kinds. Some need the kind of core as a
constant (``template <int32_t core = g_coreType>``) or a macro (``__DAV_C220_VEC__``). These are compiled twice: for cube
cores, which also yields the host's code, and for vector cores. The only visible symbol of the second object is a table
of the kernels' entries. The first object looks up there what a vector core runs.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from ascend_graph.errors import AscendGraphError

#: Kinds of core by the value of ``g_coreType``, with the macros that the device compiler defines for each.
CUBE, VECTOR = 1, 2
_MACROS = {CUBE: ("__DAV_C220_CUBE__", "__DAV_CUBE__"), VECTOR: ("__DAV_C220_VEC__", "__DAV_VEC__")}

_CONSTANT = re.compile(r"[=<,]\s*(?:(?:::)?\s*AscendC\s*::\s*)?g_coreType\s*[,>]")
_MACRO = re.compile(r"\b(?:__DAV_C220_CUBE__|__DAV_C220_VEC__|__DAV_CUBE__|__DAV_VEC__)\b")
#: Names of the kernel API that only cube cores and groups of cores have, as whole identifiers: kernels' own names may
#: contain them (``is_gemma``, ``gammaDgm``).
_GROUPS = re.compile(
    r"\b(?:Core::aic|g_coreType(?!\s*==\s*(?:AscendC::)?AIV\b)|SyncAll\s*<\s*false|WaitEvent|GetSubBlock(?:Idx|Num)"
    r"|register_objects|CrossCore(?:Set|Wait)Flag\w*|ffts_\w+|(?:Batch)?Matmul(?:Impl|Type|Client)?"
    r"|Mmad(?:Params\w*|WithSparse|Mx)?|Fixpipe(?:Params\w*)?|SetFix[Pp]ipe\w*|Gemm|Conv[23][dD]\w*"
    r"|mad(?:_\w+)?(?=\s*\()|LoadData(?:[23][dD]\w*|With\w+|Unzip)|Load3D\w+|LoadImageToLocal|DataCopyCO12\w*"
    r"|(?:Que|T)Position::(?:[AB][12]|CO[12]|C[12])|Hardware::L(?:1|0\w))\b"
)
#: Questions that leave a cube core nothing to do: CANN tells a kernel's cores by its instructions.
_LEAVES = re.compile(
    r"!=\s*(?:::ascendc_host::)?Core::aic\b"
    r"|(?:==\s*(?:::ascendc_host::)?Core::aic|!=\s*(?:::ascendc_host::)?Core::aiv"
    r"|g_coreType\s*(?:==\s*(?:AscendC::)?AIC|!=\s*(?:AscendC::)?AIV))\b[\s)]*(?:\{\s*)?return\b"
)
_MARKER = re.compile(r'^# \d+ "([^"\n<]+)"(?: \d)*$', re.MULTILINE)
_ENTRY = re.compile(r" (_Z(N12ascendc_host5EntryI\S*E)3runEPKv)$", re.MULTILINE)


class CoresError(AscendGraphError):
    """Failure to join the objects of the two kinds of core: a binutils program is missing or fails."""


def needs_constant(preprocessed: str) -> bool:
    """Return whether a source uses the kind of core as a constant.

    Args:
        preprocessed: the source's preprocessed text.

    >>> needs_constant("template <int32_t core = g_coreType> void run();")
    True
    >>> needs_constant("if (g_coreType == AIV) run();")
    False
    """
    return _CONSTANT.search(preprocessed) is not None


def names_macros(preprocessed: str, toolkit: Path) -> bool:
    """Return whether a source, or one of its own headers, names a macro of one kind of core, even without effect.

    Args:
        preprocessed: the source's preprocessed text, with line markers.
        toolkit: files under it belong to the API and are not checked.
    """
    own = {name for name in _MARKER.findall(preprocessed) if not name.startswith((f"{toolkit}/", "/usr/"))}
    return any(
        _MACRO.search(Path(name).read_text(encoding="utf-8", errors="replace")) for name in own if Path(name).is_file()
    )


def is_vector_code(preprocessed: str, toolkit: Path) -> bool:
    """Return whether a source's kernels are for vector cores only.

    Such a source names nothing that belongs to cube cores, their memories or groups of cores. It may ask for cube cores
    to return.

    Args:
        preprocessed: the source's preprocessed text, with line markers.
        toolkit: files under it belong to the API and are not checked.

    >>> is_vector_code("if (ask_core() == Core::aiv) Add(z, x, y, 8);", Path("/toolkit"))
    True
    >>> is_vector_code("if (ask_core() == Core::aic) Mmad(z, x, y, p);", Path("/toolkit"))
    False
    >>> is_vector_code("if (ask_core() == Core::aic) { return; }", Path("/toolkit"))
    True
    >>> is_vector_code("if (is_gemma) Copy(gammaDgm, madeLoadData);", Path("/toolkit"))
    True
    """
    name, done = "", 0
    markers = [*_MARKER.finditer(preprocessed), None]
    for marker in markers:
        end = marker.start() if marker else len(preprocessed)
        if not name.startswith((f"{toolkit}/", "/usr/")) and _GROUPS.search(_LEAVES.sub(" ", preprocessed[done:end])):
            return False
        if marker:
            name, done = marker[1], marker.end()
    return True


def macros(core: int) -> list[str]:
    """Return the options that define the macros of one kind of core."""
    return [f"-D{name}=1" for name in _MACROS[core]]


def definitions(core: int, table: str) -> list[str]:
    """Return the preprocessor options for one kind of core; ``table`` names the table of entries."""
    options = [f"-DASCENDC_HOST_CORE={core}", *macros(core)]
    return [*options, f"-DASCENDC_HOST_VECTOR_ENTRIES={table}"] if core == CUBE else options


def table_name(source: Path, target: Path) -> str:
    """Return the name of a source's table of entries, different for each object of a program."""
    digest = hashlib.sha256(f"{source.resolve()}\0{target.resolve()}".encode()).hexdigest()
    return f"ascendc_host_vector_entries_{digest[:16]}"


def join(
    cube: Path, vector: Path, target: Path, table: str, scratch: Path, compiler: Callable[[Sequence[str]], None]
) -> None:
    """Join a source's objects for cube and for vector cores into one object.

    Args:
        cube: the object of cube cores and of the host; everything in it keeps its name.
        vector: the object of vector cores; its code that runs at program start is left out.
        target: the object to write.
        table: the name of the table of entries.
        scratch: a directory for intermediate files.
        compiler: runs the host compiler with these arguments.

    Raises:
        CoresError: ``nm`` or ``objcopy`` is missing or fails.
    """
    entries = _ENTRY.findall(_binutils("nm", str(vector)))
    # Entries of launches in functions that only this source sees are not visible outside their object yet. Unique symbols
    # (g++ has them for variables of templates) can be made local only when they are weak.
    visible, table_source, table_object = (
        scratch / f"{vector.stem}{end}" for end in ("-visible.o", "-table.cpp", "-table.o")
    )
    _binutils(
        "objcopy", "--weaken", *(f"--globalize-symbol={symbol}" for symbol, _ in entries), str(vector), str(visible)
    )
    lines = [f'extern "C" void entry{i}(const void*) __asm__("{symbol}");' for i, (symbol, _) in enumerate(entries)]
    rows = [f'    {{"{type_}E", entry{i}}},' for i, (_, type_) in enumerate(entries)]
    table_source.write_text(
        "\n".join(
            [
                *lines,
                "struct NamedEntry { const char* type; void (*code)(const void*); };",
                f'extern "C" const NamedEntry {table}[];',
                f"const NamedEntry {table}[] = {{",
                *rows,
                "    {nullptr, nullptr}};",
                "",
            ]
        )
    )
    compiler(["-fPIC", "-O1", "-c", str(table_source), "-o", str(table_object)])
    merged, private = scratch / f"{vector.stem}-merged.o", scratch / f"{vector.stem}-private.o"
    # Without groups: the linker keeps one of those with the same name, and the two kinds of core have the same names.
    compiler(["-r", "-nostdlib", "-Wl,--force-group-allocation", str(visible), str(table_object), "-o", str(merged)])
    starts = [f"--remove-section={name}" for name in (".init_array*", ".fini_array*", ".ctors*", ".dtors*")]
    _binutils("objcopy", f"--keep-global-symbol={table}", *starts, str(merged), str(private))
    compiler(["-r", "-nostdlib", str(cube), str(private), "-o", str(target)])


def _binutils(program: str, *arguments: str) -> str:
    if shutil.which(program) is None:
        raise CoresError(f"bisheng: no program {program}, which a source for two kinds of core needs; install binutils")
    done = subprocess.run([program, *arguments], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise CoresError(f"bisheng: {program} failed: {done.stderr.strip()}")
    return done.stdout
