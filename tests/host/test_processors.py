"""One table says what a processor is, and every interface gives its answer."""

from __future__ import annotations

import configparser
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import preloaded
import pytest
from ascend_graph.codegen import op_description

from ascend_graph.environment import PROCESSOR_VARIABLE, processor, toolkit_directory
from ascend_graph.host.architecture import ARCHITECTURES, architecture, processor_with
from ascend_graph.host.runtime.aclnn_functions.unsupported_socs import lacking_processors
from ascend_graph.processors import DEFAULT_PROCESSOR, KERNEL_ARCHITECTURES, PROCESSORS, Processor

TREE = Path(__file__).resolve().parents[2]
TOOLKIT = toolkit_directory()
NAMES = list(PROCESSORS)

#: The device as tiling functions and hand-written aclnn functions ask about it.
PLATFORM = r"""
#include <cstdio>
#include <string>

#include "ascend_graph/op_api/platform.h"

int main() {
    const platform_ascendc::PlatformAscendC platform;
    const auto memory = [&](platform_ascendc::CoreMemType type) {
        uint64_t size = 0;
        platform.GetCoreMemSize(type, size);
        return static_cast<unsigned long long>(size);
    };
    using Memory = platform_ascendc::CoreMemType;
    std::printf("tiling %u %u %u %u %u %llu %llu %llu %llu %llu %llu %llu\n",
                static_cast<unsigned>(platform.GetCurNpuArch()), platform.GetCoreNumAic(), platform.GetCoreNumAiv(),
                platform.GetCoreNum(), platform.GetCoreNumVector(), memory(Memory::UB), memory(Memory::L1), memory(Memory::L0_A), memory(Memory::L0_B), memory(Memory::L0_C),
                memory(Memory::L2), memory(Memory::HBM));
    std::printf("version %d\n", static_cast<int>(platform.GetSocVersion()));
    for (const char* key : {"SoC_version", "Short_SoC_version", "NpuArch", "AIC_version"}) {
        std::string value;
        fe::PlatFormInfos::get()->GetPlatformRes("version", key, value);
        std::printf("%s %s\n", key, value.c_str());
    }
    std::string fixpipe, bias = "none";
    fe::PlatFormInfos::get()->GetPlatformRes("AICoreintrinsicDtypeMap", "Intrinsic_fix_pipe_l0c2out", fixpipe);
    fe::PlatFormInfos::get()->GetPlatformRes("AICoreintrinsicDtypeMap", "Intrinsic_data_move_l12bt", bias);
    std::printf("intrinsics %s %s\n", fixpipe.empty() ? "none" : fixpipe.c_str(), bias.c_str());
    fe::PlatformInfo info;
    fe::OptionalInfo optional;
    fe::PlatformInfoManager::Instance().GetPlatformInfoWithOutSocVersion(info, optional);
    std::printf("manager %s %s %u %u %llu\n", optional.soc_version.c_str(), info.str_info.short_soc_version.c_str(),
                info.soc_info.ai_core_cnt, info.soc_info.vector_core_cnt,
                static_cast<unsigned long long>(info.soc_info.l2_size));
    const op::PlatformInfo& aclnn = op::GetCurrentPlatformInfo();
    std::printf("aclnn %s %u %u %u\n", aclnn.GetSocLongVersion().c_str(), static_cast<unsigned>(aclnn.GetCurNpuArch()),
                aclnn.GetCubeCoreNum(), aclnn.GetVectorCoreNum());
    return 0;
}
"""

#: The device as ACL and torch_npu describe it.
DEVICE = """
import ctypes, json, torch, torch_npu
acl = ctypes.CDLL("libascendcl.so")
acl.aclrtGetSocName.restype = ctypes.c_char_p
torch.npu.set_device(0)

def of(function, *arguments):
    value = ctypes.c_int64()
    assert getattr(acl, function)(*arguments, ctypes.byref(value)) == 0
    return value.value

def spec(key):
    value = ctypes.create_string_buffer(64)
    assert acl.rtGetSocSpec(b"version", key, value, 64) == 0
    return value.value.decode()

properties = torch_npu.npu.get_device_properties(0)
print(json.dumps({
    "names": [acl.aclrtGetSocName().decode(), spec(b"SoC_version"), torch_npu.npu.get_device_name(0), properties.name],
    "short": spec(b"Short_SoC_version"),
    "arch": int(spec(b"NpuArch")),
    "cube": [of("aclGetDeviceCapability", 0, 0), of("aclrtGetDeviceInfo", 0, 101), properties.cube_core_num],
    "vector": [of("aclGetDeviceCapability", 0, 1), of("aclrtGetDeviceInfo", 0, 201), properties.vector_core_num],
    "l2": [of("aclGetDeviceCapability", 0, 2), of("aclrtGetDeviceInfo", 0, 302), properties.L2_cache_size],
    "ub": of("aclrtGetDeviceInfo", 0, 204),
}))
"""


def as_processor(name: str) -> dict[str, str]:
    return {**os.environ, PROCESSOR_VARIABLE: name}


def arch_number(one: Processor) -> int:
    return int(one.npu_arch.removeprefix("dav-"))


@pytest.mark.parametrize("name", NAMES)
def test_acl_and_torch_npu_describe_the_processor(name: str) -> None:
    command = [sys.executable, "-c", DEVICE]
    done = preloaded.run(command, env=as_processor(name), text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    one = PROCESSORS[name]
    assert set(said["names"]) == {name}
    assert (said["short"], said["arch"]) == (one.short_name, arch_number(one))
    assert set(said["cube"]) == {one.cube_cores}
    assert set(said["vector"]) == {one.vector_cores}
    assert set(said["l2"]) == {one.l2_mib << 20}
    assert said["ub"] == KERNEL_ARCHITECTURES[one.kernels].local_kib["ub"] << 10


@pytest.fixture(scope="module")
def platforms(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The program above, for packages of each architecture."""
    directory = tmp_path_factory.mktemp("platforms")
    source = directory / "platform.cpp"
    source.write_text(PLATFORM)
    includes = [f"-I{TOOLKIT / place}" for place in ("include", "include/op_host")]
    for name in KERNEL_ARCHITECTURES:
        options = ["-std=c++17", f"-DASCEND_GRAPH_NPU_ARCH={name.removeprefix('dav-')}"]
        subprocess.run(["g++", *options, *includes, source, "-o", directory / name], check=True)
    return {name: directory / name for name in KERNEL_ARCHITECTURES}


@pytest.mark.parametrize("name", NAMES)
def test_tiling_functions_are_told_the_processor(name: str, platforms: dict[str, Path]) -> None:
    one = PROCESSORS[name]
    done = subprocess.run([platforms[one.kernels]], env=as_processor(name), text=True, capture_output=True, check=True)
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    local = KERNEL_ARCHITECTURES[one.kernels].local_kib
    sizes = [local[which] << 10 for which in ("ub", "l1", "l0a", "l0b", "l0c")]
    l2, hbm, arch = one.l2_mib << 20, one.hbm_gib << 30, arch_number(one)
    coupled = one.npu_arch == "dav-2002"
    vector = one.cube_cores if coupled else one.vector_cores
    cores = (one.cube_cores, vector, vector, one.vector_cores if coupled else 0)
    assert said["tiling"] == " ".join(map(str, (arch, *cores, *sizes, l2, hbm)))
    assert (said["SoC_version"], said["Short_SoC_version"]) == (name, one.short_name)
    assert (said["NpuArch"], said["AIC_version"]) == (str(arch), one.cores)
    described = KERNEL_ARCHITECTURES[one.npu_arch].description if one.npu_arch in KERNEL_ARCHITECTURES else {}
    dtypes = described.get("AICoreintrinsicDtypeMap", {})
    instructions = ("Intrinsic_fix_pipe_l0c2out", "Intrinsic_data_move_l12bt")
    assert said["intrinsics"] == " ".join(dtypes.get(one, "none") for one in instructions)
    assert said["manager"] == f"{name} {one.short_name} {one.cube_cores} {one.vector_cores} {l2}"
    assert said["aclnn"] == f"{name} {arch} {one.cube_cores} {one.vector_cores}"
    versions = {"Ascend910B": 1, "Ascend310P": 2, "Ascend910_93": 4, "Ascend950": 5}
    assert int(said["version"]) == versions[one.short_name]


def test_a_package_for_other_kernels_is_told_a_processor_that_runs_them(platforms: dict[str, Path]) -> None:
    done = subprocess.run(
        [platforms["dav-3510"]], env=as_processor("Ascend910B1"), text=True, capture_output=True, check=True
    )
    assert "SoC_version Ascend950PR_9589\n" in done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_npu_smi_tells_the_processor(name: str) -> None:
    def ask(*arguments: str) -> str:
        command = [TOOLKIT / "bin/npu-smi", "info", *arguments]
        return subprocess.run(command, env=as_processor(name), text=True, capture_output=True, check=True).stdout

    board = dict(re.findall(r"^\t([\w ]+?)\s+: (.*)$", ask("-t", "board", "-i", "0", "-c", "0"), re.MULTILINE))
    # As build scripts put the name together.
    parts = [board.get("Chip Type", "") + board["Chip Name"], board.get("NPU Name")]
    assert "_".join(filter(None, parts)) == name
    assert f"/ {PROCESSORS[name].hbm_gib * 1024} " in ask()


def test_npu_smi_refuses_a_name_that_the_table_does_not_have() -> None:
    done = subprocess.run(
        [TOOLKIT / "bin/npu-smi", "info"], env=as_processor("Ascend910C"), text=True, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "ASCEND_GRAPH_HOST_SOC=Ascend910C: not a processor that the host stands for" in done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_the_toolkit_describes_the_processor(name: str) -> None:
    one = PROCESSORS[name]
    config = configparser.ConfigParser()
    for known in (name, *one.aliases):
        assert config.read(TOOLKIT / f"compiler/data/platform_config/{known}.ini")
        assert config["version"]["SoC_version"] == known
        assert config["version"]["Short_SoC_version"] == one.short_name


def test_architectures_know_their_processors() -> None:
    assert processor({}) == DEFAULT_PROCESSOR == "Ascend910B1"
    for name, one in PROCESSORS.items():
        if one.npu_arch in KERNEL_ARCHITECTURES:
            assert architecture(name).name == one.npu_arch
            assert processor_with(architecture(name), {PROCESSOR_VARIABLE: name}) == name
    assert [one.name for one in ARCHITECTURES] == list(KERNEL_ARCHITECTURES)


def test_generated_kernels_fit_into_the_unified_buffer() -> None:
    """The generators lie below the host runtime and cannot read its table."""
    unified_buffer = KERNEL_ARCHITECTURES["dav-2201"].local_kib["ub"] << 10
    assert unified_buffer == op_description._BUFFER


def test_functions_are_lacking_on_processors_of_the_table() -> None:
    assert set().union(*lacking_processors().values()) <= set(PROCESSORS)


def test_no_source_names_a_processor_that_the_table_does_not_have() -> None:
    known = {name for one in PROCESSORS.values() for name in (one.name, *one.aliases)}
    named = re.compile(r"\bAscend(?:910B[1-9]|910_93\d\d|950[A-Z]+_\d+|310P[1-9])\b")
    for directory in ("ascend_graph", "codegen", "csrc"):
        for path in sorted((TREE / directory).rglob("*")):
            if path.is_file() and path.suffix in (".py", ".txt", ".cpp", ".h", ".cmake", ".jinja", ".in", ""):
                assert set(named.findall(path.read_text(errors="replace"))) <= known, path
