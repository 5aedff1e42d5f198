"""Programs in C++ that use ACL without Python: compiled against the toolkit's headers, run by the launcher."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from pathlib import Path

from ascend_graph.environment import toolkit_directory

PROGRAM = r"""
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>
#include "acl/acl.h"
#define CHECK(e) \
    do { \
        if (!(e)) { \
            const char* m = aclGetRecentErrMsg(); \
            std::printf("line %d: %s: %s\n", __LINE__, #e, m ? m : ""); \
            return 1; \
        } \
    } while (0)
static int32_t words_number(const char* words) {
    int32_t major = 0, minor = 0, patch = 0;
    std::sscanf(words, "%d.%d.%d", &major, &minor, &patch);
    return major * 10000000 + minor * 100000 + patch * 1000;
}
int main(int argc, char** argv) {
    CHECK(argc == 2 && std::strcmp(argv[1], "--flag") == 0);
    CHECK(aclInit(nullptr) == 0);
    CHECK(aclInit(nullptr) == ACL_ERROR_REPEAT_INITIALIZE);
    // The release, in words and as one number that grows with it.
    char package[] = "runtime", words[ACL_PKG_VERSION_MAX_SIZE] = {};
    int32_t release = 0;
    CHECK(aclsysGetVersionStr(package, words) == 0);
    CHECK(aclsysGetVersionNum(package, &release) == 0 && release == words_number(words));
    CHECK(aclsysGetVersionNum(nullptr, &release) == 100000 && aclsysGetVersionNum(package, nullptr) == 100000);
    // A thread begins without a context; a device's own is not the program's to destroy.
    aclrtContext none = nullptr, first = nullptr, second = nullptr, now = nullptr;
    int32_t device = -1;
    CHECK(aclrtGetCurrentContext(&none) == 107002 && aclrtGetDevice(&device) == 107002);
    CHECK(aclrtSetDevice(0) == 0 && aclrtGetCurrentContext(&first) == 0 && first != nullptr);
    CHECK(aclrtSetDevice(0) == 0 && aclrtGetCurrentContext(&now) == 0 && now == first);
    CHECK(aclrtDestroyContext(first) == 107000 && aclrtDestroyContext(nullptr) == 100000);
    CHECK(aclrtCreateContext(&second, 1) == 0 && second != first);
    CHECK(aclrtGetCurrentContext(&now) == 0 && now == second && aclrtGetDevice(&device) == 0 && device == 1);
    CHECK(aclrtCreateContext(&now, 9) == 200002 && aclrtCreateContext(nullptr, 0) == 100000);
    // Contexts are a thread's own.
    int failures = 0;
    std::thread([&] {
        aclrtContext other = nullptr;
        failures += aclrtGetCurrentContext(&other) != 107002;
        failures += aclrtSetCurrentContext(first) != 0 || aclrtGetDevice(&device) != 0 || device != 0;
    }).join();
    CHECK(failures == 0);
    CHECK(aclrtGetDevice(&device) == 0 && device == 1);
    CHECK(aclrtSetCurrentContext(first) == 0 && aclrtGetDevice(&device) == 0 && device == 0);
    CHECK(aclrtSetCurrentContext(second) == 0 && aclrtDestroyContext(second) == 0);
    CHECK(aclrtDestroyContext(second) == 107000 && aclrtSetCurrentContext(second) == 107000);
    CHECK(aclrtGetCurrentContext(&now) == 107002);
    CHECK(aclrtSetCurrentContext(&device) == 107000 && aclrtSetCurrentContext(nullptr) == 100000);
    CHECK(aclrtSetCurrentContext(first) == 0);

    void *a = nullptr, *b = nullptr;
    char host[12] = "abcdefghijk", back[8] = {};
    CHECK(aclrtMalloc(&a, 64, ACL_MEM_MALLOC_HUGE_FIRST) == 0
        && aclrtMallocCached(&b, 64, ACL_MEM_MALLOC_NORMAL_ONLY) == 0);
    CHECK(aclrtMemcpy2d(a, 32, host, 4, 3, 2, ACL_MEMCPY_HOST_TO_DEVICE) == 0);  // abc, efg
    aclrtStream stream = nullptr;
    CHECK(aclrtCreateStream(&stream) == 0);
    CHECK(aclrtMemcpy2dAsync(back, 3, a, 32, 3, 2, ACL_MEMCPY_DEVICE_TO_HOST, stream) == 0);
    CHECK(aclrtSynchronizeStream(stream) == 0 && std::strcmp(back, "abcefg") == 0);
    CHECK(aclrtMemcpy2d(a, 2, host, 4, 3, 2, ACL_MEMCPY_HOST_TO_DEVICE) == 100000);
    CHECK(aclrtMemFlush(b, 64) == 0 && aclrtMemInvalidate(nullptr, 1) == 100000);
    CHECK(aclrtDestroyStream(stream) == 0 && aclrtDestroyStream(stream) == 200005);
    CHECK(aclrtFree(a) == 0 && aclrtFree(a) == 100000 && aclrtFree(b) == 0);
    // Host memory begins with a page, and is not the device's.
    CHECK(aclrtMalloc(&a, 100, ACL_MEM_MALLOC_HUGE_FIRST) == 0 && aclrtMallocHost(&b, 100) == 0);
    CHECK(reinterpret_cast<uintptr_t>(b) % 4096 == 0 && aclrtFree(b) == 100000 && aclrtFreeHost(a) == 100000);
    size_t free_bytes = 0, total = 0, rest = 0;
    CHECK(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total) == 0 && free_bytes < total);
    CHECK(aclrtFree(a) == 0 && aclrtGetMemInfo(ACL_HBM_MEM, &rest, &total) == 0 && rest == free_bytes + 512);
    CHECK(aclrtFreeHost(b) == 0 && aclrtGetMemInfo(ACL_HBM_MEM, &rest, &total) == 0 && rest == free_bytes + 512);
    // A batch of copies, each between the places that its attributes say; all in one direction.
    CHECK(aclrtMalloc(&a, 64, ACL_MEM_MALLOC_HUGE_FIRST) == 0 && aclrtMallocHost(&b, 64) == 0);
    {
        aclrtMemcpyBatchAttr in[2] = {{{0, ACL_MEM_LOCATION_TYPE_DEVICE}, {0, ACL_MEM_LOCATION_TYPE_HOST}, {}},
                                      {{0, ACL_MEM_LOCATION_TYPE_DEVICE}, {0, ACL_MEM_LOCATION_TYPE_HOST}, {}}};
        aclrtMemcpyBatchAttr out[1] = {{{0, ACL_MEM_LOCATION_TYPE_HOST}, {0, ACL_MEM_LOCATION_TYPE_DEVICE}, {}}};
        char from[] = "12345678", to[9] = {};
        void* parts[] = {a, static_cast<char*>(a) + 32, static_cast<char*>(a) + 16};
        void* sources[] = {from, from + 3, from + 5};
        void* results[] = {to, to + 3, to + 5};
        size_t sizes[] = {3, 2, 3}, first[] = {0, 2}, wrong[] = {0, 3}, failed = 0;
        CHECK(aclrtMemcpyBatch(parts, sizes, sources, sizes, 3, in, first, 2, &failed) == 0 && failed == SIZE_MAX);
        CHECK(aclrtCreateStream(&stream) == 0);
        CHECK(aclrtMemcpyBatchAsync(results, sizes, parts, sizes, 3, out, first, 1, &failed, stream) == 0);
        CHECK(std::strcmp(to, from) == 0);  // not pinned, so it has waited
        void* pinned[] = {b, static_cast<char*>(b) + 3, static_cast<char*>(b) + 5};
        CHECK(aclrtMemcpyBatchAsync(pinned, sizes, parts, sizes, 3, out, first, 1, &failed, stream) == 0);
        CHECK(aclrtSynchronizeStream(stream) == 0 && std::memcmp(b, from, 8) == 0 && aclrtDestroyStream(stream) == 0);
        CHECK(aclrtMemcpyBatch(parts, sizes, sources, sizes, 3, out, first, 1, &failed) == 100000 && failed == 0);
        in[1] = out[0];
        CHECK(aclrtMemcpyBatch(parts, sizes, sources, sizes, 3, in, first, 2, &failed) == 100000 && failed == 2);
        CHECK(aclrtMemcpyBatch(parts, sizes, sources, sizes, 3, in, wrong, 2, &failed) == 100000 && failed == SIZE_MAX);
        CHECK(aclrtMemcpyBatch(parts, sizes, sources, sizes, 1, in, first, 2, &failed) == 100000);
        size_t small[] = {3, 1, 3};
        CHECK(aclrtMemcpyBatch(parts, small, sources, sizes, 3, in, first, 1, &failed) == 100000 && failed == SIZE_MAX);
        aclrtPtrAttributes attributes;
        CHECK(aclrtPointerGetAttributes(a, &attributes) == 0
            && attributes.location.type == ACL_MEM_LOCATION_TYPE_DEVICE);
        CHECK(aclrtPointerGetAttributes(to, &attributes) == 0
            && attributes.location.type == ACL_MEM_LOCATION_TYPE_UNREGISTERED);
    }
    CHECK(aclrtFree(a) == 0 && aclrtFreeHost(b) == 0);
    aclrtRunMode mode = ACL_DEVICE;
    CHECK(aclrtGetRunMode(&mode) == 0 && mode == ACL_HOST);
    aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
    CHECK(aclrtCtxGetCurrentDefaultStream(&stream) == 0 && stream != nullptr);
    CHECK(aclrtStreamQuery(stream, &status) == 0 && status == ACL_STREAM_STATUS_COMPLETE);
    CHECK(aclrtDestroyStream(stream) == 200005);
    CHECK(aclrtGetPhyDevIdByLogicDevId(1, &device) == 0 && device == 1
        && aclrtGetLogicDevIdByPhyDevId(2, &device) == 200002);
    ACL_APP_LOG(ACL_INFO, "%d", 1);
    for (uint32_t bits = 0; bits < 65536; ++bits) {
        const float value = aclFloat16ToFloat(static_cast<aclFloat16>(bits));
        CHECK(value != value ? (bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0 : aclFloatToFloat16(value) == bits);
    }
    CHECK(aclFloat16ToFloat(0x3c01) == 1 + 1 / 1024.f && aclFloat16ToFloat(0x8001) == -1 / 16777216.f);
    CHECK(aclFloatToFloat16(1 + 1 / 2048.f) == 0x3c00 && aclFloatToFloat16(1 + 3 / 2048.f) == 0x3c02);
    CHECK(aclFloatToFloat16(65519.f) == 0x7bff && aclFloatToFloat16(65520.f) == 0x7c00
        && aclFloatToFloat16(-1e-9f) == 0x8000);
    int32_t major = 0, minor = 0, patch = 0;
    CHECK(aclrtGetVersion(&major, &minor, &patch) == 0 && major >= 1);
    CHECK(aclrtResetDevice(0) == 0 && aclrtGetDevice(&device) == 107002 && aclFinalize() == 0);
    std::puts("ok");
}
"""


def test_a_program_without_python(tmp_path: Path) -> None:
    source, program = tmp_path / "main.cpp", tmp_path / "a.out"
    source.write_text(PROGRAM)
    home = toolkit_directory()
    command = [
        "g++",
        "-std=c++17",
        "-pthread",
        source,
        "-o",
        program,
        f"-I{home}/include",
        f"-L{home}/lib64",
        "-lascendcl",
    ]
    subprocess.run(command, check=True, timeout=900)
    environment = {**os.environ, "ASCEND_GRAPH_HOST_DEVICES": "2"}
    launched = [sys.executable, "-m", "ascend_graph.host", "--quiet", str(program), "--flag"]
    result = subprocess.run(launched, capture_output=True, text=True, check=False, timeout=900, env=environment)
    assert (result.returncode, result.stdout) == (0, "ok\n"), result.stdout + result.stderr


def test_what_the_header_declares_is_there() -> None:
    home = toolkit_directory()
    declared = re.findall(r"^\w[\w* ]*?\b(acl\w+)\(", (home / "include/acl/host_acl.h").read_text(), re.MULTILINE)
    assert len(declared) > 80
    library = ctypes.CDLL(str(home / "lib64/libascendcl.so"))
    assert [name for name in declared if not hasattr(library, name)] == []


FAILS = """
#include <cstdio>
#include "acl/acl.h"
#include "kernel_operator.h"
__global__ __vector__ void beyond(GM_ADDR out) {
    AscendC::GlobalTensor<int32_t> gm;
    gm.SetGlobalBuffer((__gm__ int32_t*)out, 4);
    gm.SetValue(4, 1);
}
int main(int argc, char**) {
    int32_t out[8] = {};
    beyond<<<1, nullptr, nullptr>>>((uint8_t*)out);
    std::printf("%d\\n", aclrtSynchronizeDevice());
    if (argc > 1) std::printf("%s\\n", aclGetRecentErrMsg());
}
"""


def test_failures_that_a_program_does_not_read_are_told_at_its_end(tmp_path: Path) -> None:
    (tmp_path / "fails.asc").write_text(FAILS)
    program, home = tmp_path / "fails", toolkit_directory()
    libraries = [f"-L{home}/lib64", f"-Wl,-rpath,{home}/lib64", "-lascendcl"]
    command = [home / "bin/bisheng", "--npu-arch=dav-2201", "fails.asc", *libraries, "-o", program]
    subprocess.run(command, cwd=tmp_path, check=True)
    ignores, reads = (
        subprocess.run([program, *arguments], capture_output=True, text=True, check=True)
        for arguments in ((), ("read",))
    )
    assert ignores.stdout == "507015\n"
    assert "kernel beyond, block 0 of 1: " in ignores.stderr
    assert ignores.stderr.count("the program has not read this error") == 1
    assert "kernel beyond, block 0 of 1: " in reads.stdout
    assert not reads.stderr
