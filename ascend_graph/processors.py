"""SoCs that the host stands for, and the architectures of their kernels: the table ``processors.toml``.

``python -m ascend_graph.processors DIRECTORY`` writes the files that the build derives from the table.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from ascend_graph.tables import read_table

TABLE = Path(__file__).with_name("processors.toml")


@dataclass(frozen=True, slots=True)
class Processor:
    """SoC as CANN's interfaces describe it; the table explains the fields."""

    name: str
    aliases: tuple[str, ...]
    short_name: str
    series: str
    npu_arch: str
    kernels: str
    cores: str
    cube_cores: int
    vector_cores: int
    l2_mib: int
    hbm_gib: int
    most_kernel_ranks: int
    has_8_bit_floats: bool


@dataclass(frozen=True, slots=True)
class KernelArchitecture:
    """Architecture whose kernels the host runs; the table explains the fields."""

    name: str
    configs: tuple[str, ...]
    directories: tuple[str, ...]
    begin: tuple[str, ...]
    local_kib: Mapping[str, int]
    description: Mapping[str, Mapping[str, str]]


def _number(architecture: str) -> int:
    return int(architecture.removeprefix("dav-"))


_table = read_table(TABLE)

#: Architectures by name.
KERNEL_ARCHITECTURES: Mapping[str, KernelArchitecture] = MappingProxyType(
    {
        name: KernelArchitecture(
            name,
            tuple(facts["configs"]),
            tuple(facts["directories"]),
            tuple(facts["begin"]),
            MappingProxyType(facts["local_kib"]),
            MappingProxyType(facts["description"]),
        )
        for name, facts in _table["architectures"].items()
    }
)

#: SoCs by name, the default first.
PROCESSORS: Mapping[str, Processor] = MappingProxyType(
    {facts["name"]: Processor(**{**facts, "aliases": tuple(facts["aliases"])}) for facts in _table["processors"]}
)

#: Names that AddConfig takes: those of the architectures, and of processors that the host does not stand for.
COMPUTE_UNITS = frozenset(_table["compute_units"]["others"]).union(
    *(one.configs for one in KERNEL_ARCHITECTURES.values())
)

#: SoC of a process whose environment names none.
DEFAULT_PROCESSOR = next(iter(PROCESSORS))


def cpp_header() -> str:
    """Return the C++ header of the table."""
    local = "".join(
        f"    {{{_number(one.name)}, {', '.join(f'{kib} * 1024' for kib in one.local_kib.values())}}},\n"
        for one in KERNEL_ARCHITECTURES.values()
    )
    sizes = ", ".join(next(iter(KERNEL_ARCHITECTURES.values())).local_kib)
    rows = "".join(
        f'    {{"{one.name}", "{one.short_name}", "{one.series}", "{one.cores}", {_number(one.npu_arch)}, '
        f"{_number(one.kernels)}, {one.cube_cores}, {one.vector_cores}, {one.most_kernel_ranks}, "
        f"{one.l2_mib}ull << 20, {one.hbm_gib}ull << 30}},\n"
        for one in PROCESSORS.values()
    )
    described = "".join(
        f'    {{{_number(one.name)}, "{label}", "{key}", "{value}"}},\n'
        for one in KERNEL_ARCHITECTURES.values()
        for label, facts in one.description.items()
        for key, value in facts.items()
    )
    return (
        "// Processors and the local memories of their cores, made of ascend_graph/processors.toml.\n"
        "#ifndef ASCENDC_HOST_INTERNAL_PROCESSOR_TABLE_H\n"
        "#define ASCENDC_HOST_INTERNAL_PROCESSOR_TABLE_H\n\n"
        "#include <cstdint>\n\n"
        "namespace ascendc_host {\n\n"
        "// The local memory of a core that kernels may use, in bytes.\n"
        "struct LocalMemory {\n"
        "    int architecture;\n"
        f"    uint32_t {sizes};\n"
        "};\n"
        f"inline constexpr LocalMemory local_memories[] = {{\n{local}}};\n\n"
        "// A fact of a device's description, as tiling functions ask for it.\n"
        "struct DescribedFact {\n"
        "    int architecture;\n"
        "    const char *label, *key, *value;\n"
        "};\n"
        f"inline constexpr DescribedFact described_facts[] = {{\n{described}}};\n\n"
        "// `npu_arch` has the number of the instructions, `kernels` that of the rules for kernels; sizes in bytes.\n"
        "struct Processor {\n"
        "    const char *name, *short_name, *series, *cores;\n"
        "    int npu_arch, kernels;\n"
        "    uint32_t cube_cores, vector_cores, most_kernel_ranks;\n"
        "    uint64_t l2, hbm;\n"
        "};\n"
        "// The first is the default.\n"
        f"inline constexpr Processor processors[] = {{\n{rows}}};\n\n"
        "}  // namespace ascendc_host\n\n"
        "#endif  // ASCENDC_HOST_INTERNAL_PROCESSOR_TABLE_H\n"
    )


def platform_config(processor: Processor) -> str:
    """Return CANN's description of an SoC, as build files and scripts read it."""
    local = KERNEL_ARCHITECTURES[processor.kernels].local_kib
    sizes = {"ub_size": "ub", "l1_size": "l1", "l0_a_size": "l0a", "l0_b_size": "l0b", "l0_c_size": "l0c"}
    sections: dict[str, dict[str, object]] = {
        "version": {
            "SoC_version": processor.name,
            "Short_SoC_version": processor.short_name,
            "AIC_version": processor.cores,
            "NpuArch": _number(processor.npu_arch),
        },
        "SoCInfo": {
            "ai_core_cnt": processor.cube_cores,
            "cube_core_cnt": processor.cube_cores,
            "vector_core_cnt": processor.vector_cores,
            "l2_size": processor.l2_mib << 20,
            "memory_size": processor.hbm_gib << 30,
        },
        "AICoreSpec": {key: local[which] << 10 for key, which in sizes.items()},
    }
    described = KERNEL_ARCHITECTURES.get(processor.npu_arch)
    for label, facts in described.description.items() if described is not None else ():
        numbered = {str(i): f"{name}|{dtypes}" for i, (name, dtypes) in enumerate(facts.items())}
        # CANN numbers the instructions.
        sections.setdefault(label, {}).update(numbered if label.endswith("DtypeMap") else facts)
    return "\n".join(
        f"[{section}]\n" + "".join(f"{key}={value}\n" for key, value in facts.items())
        for section, facts in sections.items()
    )


def write(directory: Path) -> None:
    """Write the header, the platform_config files and the CMake variables of the table."""
    header = directory / "include/ascendc_host/internal/processor_table.h"
    _write_if_changed(header, cpp_header())
    for processor in PROCESSORS.values():
        configs = directory / "platform_config"
        _write_if_changed(configs / f"{processor.name}.ini", platform_config(processor))
        for name in processor.aliases:  # of these the table has the series alone
            series = f"[version]\nSoC_version={name}\nShort_SoC_version={processor.short_name}\n"
            _write_if_changed(configs / f"{name}.ini", series)
    _write_if_changed(directory / "processors.cmake", f"set(ASCEND_GRAPH_DEFAULT_PROCESSOR {DEFAULT_PROCESSOR})\n")


def _write_if_changed(path: Path, text: str) -> None:
    """Write a file unless its text is the same, and so keep the time stamp that dependents are rebuilt by."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _check(processors: Iterable[Processor]) -> None:
    for one in processors:
        if one.kernels not in KERNEL_ARCHITECTURES:
            raise ValueError(
                f"{TABLE}: {one.name} has kernels = {one.kernels!r}; expected one of {', '.join(KERNEL_ARCHITECTURES)}"
            )


_check(PROCESSORS.values())

if __name__ == "__main__":
    write(Path(sys.argv[1]))
