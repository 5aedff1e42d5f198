"""One table says what a dtype is, and every interface gives its answer."""

from __future__ import annotations

import re
import subprocess

import pytest
import torch
from ascend_graph.codegen.infer_shape_names import GE_DTYPES

from ascend_graph.environment import toolkit_directory
from ascend_graph.host import dtypes
from ascend_graph.prototypes.dtypes import _NOT_OF_ACL, BITS, TORCH_NAMES, DataType

TOOLKIT = toolkit_directory()

#: Numbers, names and sizes as GE's and ACL's headers and libraries have them.
PROGRAM = r"""
#include <cstdio>

#include "acl/host_acl.h"
#include "graph/utils/type_utils.h"

int main() {
    for (int number = -1; number <= ge::DT_MAX; ++number) {
        const auto dtype = static_cast<ge::DataType>(number);
        std::printf("%d %s %d %zu\n", number, ge::TypeUtils::DataTypeToSerialString(dtype).c_str(),
                    ge::GetSizeByDataType(dtype), aclDataTypeSize(static_cast<aclDataType>(number)));
    }
    static_assert(ge::DT_BF16 == 27 && C_DT_BF16 == 27 && ge::DT_FLOAT4_E1M2 == 41 && C_DT_FLOAT4_E1M2 == 41);
}
"""


def ge_size(dtype: DataType) -> int:
    """Return the bytes of an element, or its bits above 1000, as GetSizeByDataType does."""
    bits = BITS.get(dtype, 0)
    if bits == 0:
        return -1
    return bits // 8 if bits % 8 == 0 else 1000 + bits


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[int, tuple[str, int, int]]:
    directory = tmp_path_factory.mktemp("dtypes")
    source = directory / "dtypes.cpp"
    source.write_text(PROGRAM)
    places = [f"-I{TOOLKIT / place}" for place in ("include", "include/op_host")]
    libraries = [f"-L{TOOLKIT / 'lib64'}", f"-Wl,-rpath,{TOOLKIT / 'lib64'}", "-lascendcl"]
    subprocess.run(["g++", "-std=c++17", *places, source, *libraries, "-o", directory / "dtypes"], check=True)
    lines = subprocess.run([directory / "dtypes"], text=True, capture_output=True, check=True).stdout.splitlines()
    return {int(n): (name, int(size), int(acl)) for n, name, size, acl in map(str.split, lines)}


def test_ge_knows_names_and_sizes(said: dict[int, tuple[str, int, int]]) -> None:
    for number, (name, size, _) in said.items():
        if number in list(DataType):
            assert (name, size) == (DataType(number).ge_name, ge_size(DataType(number)))
        else:
            assert (name, size) == ("DT_UNDEFINED", -1)


def test_acl_knows_the_sizes_of_its_dtypes(said: dict[int, tuple[str, int, int]]) -> None:
    text = (TOOLKIT / "include/acl/host_acl.h").read_text()
    enumeration = text[: text.index("} aclDataType;")].rpartition("typedef enum {")[2]
    of_acl = {int(number): name for name, number in re.findall(r"ACL_(\w+) = (\d+)", enumeration)}
    assert of_acl == {int(dtype): dtype.name for dtype in DataType if dtype not in _NOT_OF_ACL}
    for number, (_, size, bytes_of_acl) in said.items():
        whole = 0 < size < 1000 and number in of_acl
        assert bytes_of_acl == (size if whole else 0), number


def test_torch_has_the_named_dtypes_with_the_same_sizes() -> None:
    for dtype, name in TORCH_NAMES.items():
        assert GE_DTYPES[name] == dtype
        if hasattr(torch, name):
            pair = 2 if dtype == DataType.FLOAT4_E2M1 else 1
            assert getattr(torch, name).itemsize * 8 == BITS[dtype] * pair
    for dtype, of_torch in dtypes._TORCH.items():
        assert dtypes.ge_dtype(of_torch) == dtype
