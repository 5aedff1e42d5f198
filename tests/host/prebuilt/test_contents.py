"""What is read of a package that CANN built, and what is refused by name."""

from __future__ import annotations

import json
import platform
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from ascend_graph.codegen.operator_package import TilingField, TilingStructure

from ascend_graph.host.packages.format import OperatorPackageError
from ascend_graph.host.prebuilt.contents import check_includes, find_operator
from ascend_graph.host.prebuilt.definition import definition_source, toolkit_structures
from ascend_graph.host.prebuilt.tiling_structures import library_facts
from ascend_graph.prototypes import DataType

sys.path.insert(0, str(Path(__file__).parent))
from built_by_cann import CONFIGURATION

SOC = "ascend910b"
TBE = Path("op_impl/ai_core/tbe")


@pytest.fixture
def copied(package: Path, tmp_path: Path) -> Path:
    return shutil.copytree(package, tmp_path / "vendor")


def test_an_operator_has_the_combinations_and_files_of_its_package(package: Path) -> None:
    operator = find_operator(package, "Doubled", SOC)
    assert operator.inputs[0].dtypes == (DataType.FLOAT, DataType.INT32)
    assert operator.inputs[0].formats == ("ND", "ND")
    assert (operator.kernel.name, operator.interface) == ("doubled.cpp", "doubled")
    assert operator.sources == package / TBE / "vendor_impl"


def test_a_library_tells_its_structures_without_the_padding(package: Path) -> None:
    (structure,) = library_facts(find_operator(package, "Doubled", SOC).tiling_library, "Doubled").structures
    assert (structure.name, structure.size) == ("DoubledTilingData", 16)
    assert [(one.type, one.name) for one in structure.fields] == [("uint32_t", "blocks"), ("int64_t", "total")]


def test_a_definition_holds_the_structure_to_the_library_s_size(package: Path) -> None:
    operator = find_operator(package, "Doubled", SOC)
    text = definition_source(operator, library_facts(operator.tiling_library, "Doubled"), (True, True, (0,)))
    assert "static_assert(sizeof(DoubledTilingData) == 16" in text
    assert "TILING_DATA_FIELD_DEF(int64_t, total);" in text
    assert ".DataType({ge::DT_FLOAT, ge::DT_INT32})" in text
    assert ".InputsDataDependency({0})" in text


def test_a_package_for_another_soc_is_refused_by_name(package: Path) -> None:
    with pytest.raises(
        OperatorPackageError, match=r"Doubled: .* has no kernels for ascend950; it has them for ascend910b"
    ):
        find_operator(package, "Doubled", "ascend950")


def test_an_operator_that_the_package_lacks_is_refused(package: Path) -> None:
    with pytest.raises(
        OperatorPackageError, match=r"Tripled: .* does not list it for ascend910b; expected one of Doubled"
    ):
        find_operator(package, "Tripled", SOC)


def test_a_package_with_binaries_alone_is_refused_by_name(copied: Path) -> None:
    shutil.rmtree(copied / TBE / "vendor_impl")
    binary = copied / TBE / "kernel/ascend910b/doubled/Doubled_0.o"
    binary.parent.mkdir(parents=True)
    binary.write_bytes(b"")
    with pytest.raises(OperatorPackageError, match=r"Doubled: .*only 1 binaries for a device.*ascend-graph build"):
        find_operator(copied, "Doubled", SOC)


def test_a_source_with_headers_that_nobody_has_is_refused_by_name(copied: Path) -> None:
    kernel = copied / TBE / "vendor_impl/dynamic/doubled.cpp"
    included = '#include "../../../../common_ops/sharder.h"\n#include "kernel_operator.h"\n#include "a_library_s.h"\n'
    (kernel.parent / "own.h").write_text(included + '#if OTHER_SOC\n#include "of_another_soc.h"\n#endif\n')
    kernel.write_text('#include "own.h"\n' + kernel.read_text())
    missing = r"includes ../../../../common_ops/sharder.h, a_library_s.h, which neither .*vendor nor the toolkit has"
    with pytest.raises(OperatorPackageError, match=f"Doubled: .*{missing}"):
        check_includes(find_operator(copied, "Doubled", SOC))


def test_headers_that_declare_template_instances_are_included_in_the_definition(package: Path) -> None:
    operator = find_operator(package, "Doubled", SOC)
    facts = library_facts(operator.tiling_library, "Doubled")
    text = definition_source(operator, facts, (True, True, ()), ("../op_kernel/dynamic/doubled_keys.h",))
    assert '#include "../op_kernel/dynamic/doubled_keys.h"' in text


def test_structures_of_the_toolkit_are_the_toolkit_s_or_refused(package: Path) -> None:
    operator = find_operator(package, "Doubled", SOC)
    facts = library_facts(operator.tiling_library, "Doubled")
    there = toolkit_structures()
    fields = tuple(TilingField("int32_t", name, 0) for name in there["TCubeTiling"])
    cube = TilingStructure(("TCubeTilingOpApi",), "TCubeTiling", 4 * len(fields), fields)
    text = definition_source(operator, replace(facts, structures=(cube, *facts.structures)), (True, True, ()))
    assert "BEGIN_TILING_DATA_DEF(TCubeTiling)" not in text
    assert "static_assert(sizeof(TCubeTiling) ==" in text
    other = replace(cube, fields=fields[1:])
    with pytest.raises(OperatorPackageError, match=r"has TCubeTiling with other fields .*expected usedCoreNum, M, N"):
        definition_source(operator, replace(facts, structures=(other,)), (True, True, ()))


def test_a_package_for_another_machine_is_refused_by_name(copied: Path) -> None:
    linux = copied / TBE / "op_tiling/lib/linux"
    (linux / platform.machine()).rename(linux / "elsewhere")
    with pytest.raises(OperatorPackageError, match="no library of tiling functions for .*it has one for elsewhere"):
        find_operator(copied, "Doubled", SOC)


def test_a_tiling_library_that_does_not_load_is_refused_by_name(package: Path, tmp_path: Path) -> None:
    broken = tmp_path / "libbroken.so"
    broken.write_bytes(b"\x7fELF")
    with pytest.raises(OperatorPackageError, match=r"libbroken.so: .*does not load"):
        library_facts(broken, "Doubled")


def test_a_library_without_the_operator_is_refused(package: Path) -> None:
    library = find_operator(package, "Doubled", SOC).tiling_library
    with pytest.raises(OperatorPackageError, match="has no tiling function of Tripled; expected one of Doubled"):
        library_facts(library, "Tripled")


def test_a_malformed_configuration_is_refused_with_its_file(copied: Path) -> None:
    (file,) = (copied / TBE / "config/ascend910b").glob("*.json")
    file.write_text("{")
    with pytest.raises(OperatorPackageError, match="ops-info.json: is not readable"):
        find_operator(copied, "Doubled", SOC)
    file.write_text(json.dumps(CONFIGURATION).replace("float32", "float99"))
    with pytest.raises(OperatorPackageError, match="x: the dtype 'float99'"):
        find_operator(copied, "Doubled", SOC)
