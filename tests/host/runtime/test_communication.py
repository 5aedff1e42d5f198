"""Kernels that communicate with those of other ranks, in a program without PyTorch whose ranks are threads."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ascend_graph.environment import toolkit_directory
from ascend_graph.host.architecture import DAV_2201, DAV_3510, Architecture
from ascend_graph.host.projects.build import build_project_package
from ascend_graph.host.projects.model import BuildOptions

HERE = Path(__file__).parent / "communication"
#: The ways of the operator, by the names that the kernel has for them.
WAYS = re.findall(r"^    ([A-Z0-9_]+),", (HERE / "op_kernel/communicate_tiling.h").read_text(), re.MULTILINE)
#: By processor what it is called, and the ways that every rank is refused, with the function that is not on it.
NOT_ON = {
    "Ascend910B1": (
        "Atlas A2",
        {
            "ALL_TO_ALL_V": "AlltoAllV",
            "STEPS": "AlltoAllV",
            "STEPS_BEFORE": "AlltoAllV",
            "TWO_GROUPS": "InterHcclGroupSync",
            "BATCH_WRITE": "GetQueueNum",
            "WRITE": "AlltoAllvWrite",
        },
    ),
    "Ascend910_9391": ("Atlas A3", {"WRITE": "AlltoAllvWrite"}),
    "Ascend950PR_9589": (
        "Ascend 950",
        {
            "STEPS": "SetStepSize",
            "STEPS_BEFORE": "SetStepSize",
            "WINDOWS": "GetWindowsInAddr",
            "TWO_GROUPS": "InterHcclGroupSync",
            "BATCH_WRITE": "GetWindowsInAddr",
            "GLOBAL_TILING": "SetCcTiling",
        },
    ),
}
REFUSED = {
    "NO_FINALIZE": "Finalize is not called: what serves it waits for more tasks for ever",
    "NOT_COMMITTED": "0 of 1 turns of AllGather are committed",
    "NO_TILING": "AllReduce: no Mc2CcTiling of it is set; call SetCcTilingV2 first",
    "UNKNOWN_HANDLE": "Wait: handle 0 is of no task; 0 tasks were prepared",
    "OUTSIDE": "AllGather: recvBuf: 768 bytes for rank 1, and its memory ends after 764",
    "PRODUCT": "HcclReduceOp 1; valid: sum (0), max (2), min (3)",
    "WAITS_TOO_OFTEN": "all 1 turns of AllReduce have been waited for",
    "WAITS_FIRST": "Wait waits for ever",
    "BOTH_CORES": "tasks come from cube cores or vector cores",
    "CCU": "Hccl<HCCL_SERVER_TYPE_CCU> is not supported on Atlas A2; valid: HCCL_SERVER_TYPE_AICPU",
    "OTHER_GROUP": "the tiling is for group",
    "TILING_IN_GLOBAL_MEMORY": "initTiling lies in global memory; give the address of a copy",
    "NO_MC2_TILING": "initTiling is not a Mc2InitTiling",
    "OTHER_ALGORITHM": "AlltoAllV is not supported on Atlas A2",
    "BEYOND_WINDOW": "bytes 2097152 to 2097156 of the tensor, whose allocation ends at byte 2097152",
    "NO_INIT": "GetRankId: the Hccl object is not initialized; call InitV2 first",
}

Program = Callable[..., list[tuple[str, int, str]]]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """Runs the program: what each rank said of each way."""
    made: dict[str, tuple[Path, Path]] = {}

    def build(architecture: Architecture) -> tuple[Path, Path]:
        work = tmp_path_factory.mktemp("communication")
        package = build_project_package(work / "vendor", HERE, options=BuildOptions(architecture=architecture))
        toolkit, libraries = toolkit_directory(), package / "op_api/lib"
        command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-o", "program", str(HERE / "program.cpp")]
        command += [f"-I{path}" for path in (toolkit / "include", package / "op_api/include", HERE / "op_kernel")]
        command += [f"-L{path}" for path in (toolkit / "lib64", libraries)]
        command += ["-l:libcust_opapi.so", "-lascendcl", "-lhccl", "-lopapi", "-lascendc_runtime", "-pthread"]
        command += [f"-Wl,-rpath,{toolkit / 'lib64'}:{libraries}"]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False, timeout=300)
        assert (done.returncode, done.stderr) == (0, "")
        return work / "program", package

    def run(
        ranks: int, first: str, last: str, processor: str = "Ascend910B1", launches: int = 1, **more: str
    ) -> list[tuple[str, int, str]]:
        numbers = [str(n) for n in (ranks, WAYS.index(first), WAYS.index(last), launches)]
        environment = {**os.environ, "ASCEND_GRAPH_HOST_DEVICES": "8", "ASCEND_GRAPH_HOST_SOC": processor, **more}
        built_for = DAV_3510 if processor.startswith("Ascend950") else DAV_2201
        if built_for.name not in made:
            made[built_for.name] = build(built_for)
        executable, package = made[built_for.name]
        environment["ASCEND_CUSTOM_OPP_PATH"] = str(package)
        result = subprocess.run(
            [executable, *numbers], env=environment, capture_output=True, text=True, check=False, timeout=300
        )
        assert (result.returncode, result.stderr) == (0, ""), result.stdout + result.stderr
        lines = [line.split(" ", 2) for line in result.stdout.splitlines()]
        return [(WAYS[int(way)], int(rank), said) for way, rank, said in lines]

    return run


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize(
    "processor",
    # A package for another architecture is built for it.
    [pytest.param(name, marks=pytest.mark.slow if name == "Ascend950PR_9589" else ()) for name in NOT_ON],
)
def test_every_rank_gets_what_the_collective_gives(program: Program, ranks: int, processor: str) -> None:
    """Twice each: a launch leaves nothing behind for the next one."""
    said = program(ranks, "ALL_REDUCE", "OLD", processor, launches=2)
    assert {way for way, _, _ in said} == set(WAYS[: WAYS.index("OLD") + 1])
    assert len(said) == 2 * ranks * (WAYS.index("OLD") + 1)
    for way, rank, text in said:
        product, refused = NOT_ON[processor]
        if way in refused:
            assert f"{refused[way]} is not supported on {product}" in text, way
        else:
            assert text == "equal", (way, rank)


def test_one_rank_alone(program: Program) -> None:
    said = program(1, "ALL_REDUCE", "OLD", "Ascend910_9391")
    assert {text for way, _, text in said if way != "WRITE"} == {"equal"}


def test_what_a_device_refuses_or_waits_for_without_end_is_said(program: Program) -> None:
    said = program(2, "NO_FINALIZE", "BEYOND_WINDOW", HCCL_EXEC_TIMEOUT="2", HCCL_BUFFSIZE="1")
    assert {way for way, _, _ in said} == {*REFUSED, "ONE_FAILS"}
    for way, rank, text in said:
        if way != "ONE_FAILS":
            assert REFUSED[way] in text, (way, rank)
    waiting, failing = (text for way, _, text in said if way == "ONE_FAILS")
    assert "Wait: handle -1 is of no task" in failing
    assert "rank 0 of 2: a collective of a kernel failed: it timed out after 2 seconds" in waiting


def test_steps_are_of_one_algorithm(program: Program) -> None:
    said = program(2, "OTHER_ALGORITHM", "OTHER_ALGORITHM", "Ascend910_9391")
    assert all("valid: AlltoAll=level0:fullmesh;level1:pairwise" in text for _, _, text in said)


def test_the_limit_of_a_kernel_ends_its_wait_for_other_ranks(program: Program) -> None:
    said = program(2, "ONE_FAILS", "ONE_FAILS", ASCEND_GRAPH_KERNEL_TIMEOUT="1")
    (waiting,) = (text for _, rank, text in said if rank == 0)
    assert "did not end in 1 seconds, the limit of ASCEND_GRAPH_KERNEL_TIMEOUT" in waiting


def test_windows_have_the_size_that_is_asked_for(program: Program) -> None:
    assert {text for _, _, text in program(2, "WINDOWS", "WINDOWS", HCCL_BUFFSIZE="1")} == {"equal"}
