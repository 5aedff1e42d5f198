"""Every symbol that the stock wheels need is there: linked ones are defined, looked-up ones can be found where it
matters."""

from __future__ import annotations

import importlib.util
import subprocess
from functools import cache
from pathlib import Path

import pytest

from ascend_graph.environment import toolkit_directory

TORCH_NPU = Path(next(iter(importlib.util.find_spec("torch_npu").submodule_search_locations)))
TORCH = Path(next(iter(importlib.util.find_spec("torch").submodule_search_locations)))
#: Collective communication over sockets and the ATB library have sonames of their own, loaded only when they are used.
OPTIONAL = {"libop_plugin_atb.so"}
WHEEL_LIBRARIES = sorted(p for p in TORCH_NPU.rglob("*.so") if p.name not in OPTIONAL)


@cache
def symbols(library: Path, which: str) -> frozenset[str]:
    listing = subprocess.run(["nm", "-D", which, str(library)], capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in listing.splitlines()]
    return frozenset(words[-1].split("@")[0] for words in lines if words[-2] not in "wv")


@cache
def defined() -> frozenset[str]:
    libraries = [*TORCH_NPU.rglob("*.so"), *TORCH.glob("lib/*.so*"), *toolkit_directory().glob("lib64/*.so")]
    loaded = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if ".so" in line}
    system = [
        Path(p)
        for p in loaded
        if Path(p).name.startswith(("libc.", "libm.", "libstdc++", "libgcc_s", "libdl", "librt", "ld-", "libpthread"))
    ]
    return frozenset().union(*(symbols(library, "--defined-only") for library in (*libraries, *system)))


@pytest.mark.parametrize("library", WHEEL_LIBRARIES, ids=lambda p: p.name)
def test_linked_symbols_are_defined(library: Path) -> None:
    needed = {s for s in symbols(library, "--undefined-only") if not s.startswith(("Py", "_Py"))}
    assert needed - defined() == set()


def test_unimplemented_functions_fail_with_their_name() -> None:
    import ctypes

    acl = ctypes.CDLL(str(toolkit_directory() / "lib64/libascendcl.so"))
    acl.aclGetRecentErrMsg.restype = ctypes.c_char_p
    assert acl.aclrtIpcMemClose(None) == 200001  # ACL_ERROR_API_NOT_SUPPORT
    assert acl.aclGetRecentErrMsg() == b"aclrtIpcMemClose is not implemented by the host runtime; run this on a device"
    assert acl.aclGetRecentErrMsg() is None


def test_functions_of_older_wheels_fail_with_their_name() -> None:
    import ctypes

    acl = ctypes.CDLL(str(toolkit_directory() / "lib64/libascendcl.so"))
    hccl = ctypes.CDLL(str(toolkit_directory() / "lib64/libhccl.so"))
    acl.aclGetRecentErrMsg.restype = ctypes.c_char_p
    assert hccl.HcclCommInitAll(1, None, None) == 2  # HCCL_E_PTR
    assert acl.aclGetRecentErrMsg() == b"HcclCommInitAll: devices or comms is null; expected an address"
