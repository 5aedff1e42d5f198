"""Libraries of an operator project."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

from ascend_graph.compilation import compiler
from ascend_graph.environment import toolkit_directory
from ascend_graph.host.projects.discover import discover
from ascend_graph.host.projects.libraries import (
    GENERATED_HEADERS,
    host_include_directories,
    host_library,
    install_opened,
)
from ascend_graph.host.projects.model import NO_OPTIONS
from ascend_graph.host.projects.repository import Repository

PROJECT = Path(__file__).parents[3] / "examples/operator_package"


def test_the_packages_temporary_directory_is_in_no_library(tmp_path: Path) -> None:
    """The library of one project is the same for each build, so its objects are those of the cache."""
    project = discover(Repository.around(PROJECT, NO_OPTIONS), None)
    libraries = []
    for name in ("first", "second"):
        work = tmp_path / name
        (work / GENERATED_HEADERS).mkdir(parents=True)
        (work / GENERATED_HEADERS / "aclnn_add_custom.h").write_text("int declared();\n")
        source = work / "op_api.cpp"
        source.write_text('#include "aclnn_add_custom.h"\n')
        libraries.append(host_library(project, "libcust_opapi", source, work))
    assert libraries[0] == libraries[1]
    assert not any(str(tmp_path) in str(path) for path in (*libraries[0].sources, *libraries[0].include_directories))


def test_headers_of_tiling_functions_and_aclnn_functions(tmp_path: Path) -> None:
    """Error codes come with any of opdev's, opbase may define one of the toolkit's functions, Ascend 950 has registers."""
    source = tmp_path / "source.cpp"
    source.write_text(
        """
        #include "opdev/common_types.h"
        static_assert(ACLNN_SUCCESS == 0);
        #include "op_common/op_host/tiling_base_util.h"
        namespace Ops::Base {
        inline const gert::Shape& EnsureNotScalar(const gert::Shape& shape) { return shape; }
        }
        extern "C" bool is_register_based(const gert::TilingContext& context) {
            const gert::Shape shape{2};
            return Ops::Base::EnsureNotScalar(shape) == shape && Ops::Base::IsRegbaseSocVersion(&context);
        }
        """
    )
    library = tmp_path / "library.so"
    options = [f"-I{directory}" for directory in host_include_directories()]
    options += ["-DASCEND_GRAPH_NPU_ARCH=3510", "-std=c++17", "-O0", "-w", "-fPIC", "-shared"]
    libraries = [f"-L{toolkit_directory() / 'lib64'}", "-lopapi", "-lascendcl"]
    subprocess.run([*compiler(), *options, str(source), "-o", str(library), *libraries], check=True)
    function = ctypes.CDLL(str(library)).is_register_based
    function.restype = ctypes.c_bool
    assert function(bytes(4096))


def test_libraries_that_functions_open_lie_next_to_them(tmp_path: Path) -> None:
    """Tiling functions of matrix products open CANN's cache of tilings by a path from their own."""
    (tmp_path / "libcust_opapi.so").write_bytes(b"other")
    install_opened(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["libcust_opapi.so"]
    (tmp_path / "libcust_opapi.so").write_bytes(b"\0libophost_comm_legacy.so\0")
    install_opened(tmp_path)
    cache = ctypes.CDLL(str(tmp_path / "libophost_comm_legacy.so"))
    for name in ("LegacyTilingPrepareForOpCache", "LegacyTilingParsePrepareForOpCache"):
        function = cache[name]
        function.restype = ctypes.c_bool
        assert function(None)
