"""An operator package as CANN's build lays it out, with libraries and a kernel's source of the tests' own."""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from built_by_cann import BY_HAND, CONFIGURATION, DECLARATION, HERE, PROTOTYPE, build_library


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("built_by_cann") / "vendor"
    tbe, linux = directory / "op_impl/ai_core/tbe", Path("lib/linux") / platform.machine()
    texts = {
        "op_proto/inc/op_proto.h": PROTOTYPE,
        "op_api/include/aclnn_doubled.h": DECLARATION,
        "op_api/include/aclnn_quadrupled.h": BY_HAND,
        "op_impl/ai_core/tbe/config/ascend910b/aic-ascend910b-ops-info.json": json.dumps(CONFIGURATION),
        "op_impl/ai_core/tbe/vendor_impl/dynamic/doubled.cpp": (HERE / "doubled.cpp").read_text(),
    }
    for name, text in texts.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    old, links = "-D_GLIBCXX_USE_CXX11_ABI=0", ["-lexe_graph", "-lregister"]
    build_library("tiling_library.cpp", tbe / "op_tiling" / linux / "libcust_opmaster_rt2.0.so", links, old)
    build_library("tiling_library.cpp", directory / "op_proto" / linux / "libcust_opsproto_rt2.0.so", links, old)
    classes, opapi = str(HERE / "aclnn_classes.cpp"), ["-lopapi", "-lnnopbase", "-lregister"]
    build_library("aclnn_library.cpp", directory / "op_api/lib/libcust_opapi.so", opapi, old, classes)
    return directory
