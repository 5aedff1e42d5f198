"""What documents have for a series of processors alone: refused on the host as another, and computed on the host as
that one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import preloaded
import pytest
import torch
import torch_npu
import torchair
from operator_modes import is_before_2_13

from ascend_graph.environment import PROCESSOR_VARIABLE, HostRuntimeError, processor
from ascend_graph.host import host_environment
from ascend_graph.processors import PROCESSORS


def on_host_as(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    environment = {**os.environ, PROCESSOR_VARIABLE: name}
    return preloaded.run(command, env=environment, text=True, capture_output=True, check=False)


pytestmark = pytest.mark.skipif(
    is_before_2_13(), reason="the wheel is older than these processors' names and operators"
)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PROCESSORS if name != processor({})])
def test_the_tests_of_another_processor(name: str) -> None:
    done = on_host_as(name, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(Path(__file__).parent))
    assert done.returncode == 0, done.stdout[-10_000:]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda x: torch_npu.npu_dynamic_mx_quant(x, dst_type=torch.float8_e5m2),
            (
                r"aclnnDynamicMxQuantV\d: Ascend910B1 \(Atlas A2\), which the host stands for, "
                r"does not have it by the documents; "
                r"Ascend950PR_9589 \(Ascend 950\) has: set ASCEND_GRAPH_HOST_SOC"
            ),
        ),
        (
            lambda x: torch_npu.npu_dynamic_quant(x, dst_type=torch.float8_e4m3fn),
            r"aclnnDynamicQuant(V\d)?: y is FLOAT8_E4M3FN: Ascend910B1 \(Atlas A2\)",
        ),
    ],
)
def test_functions_and_formats_of_another_processor_are_refused(call: object, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        call(torch.randn(4, 64).half().npu())


@pytest.mark.parametrize("dynamic", [False, True])
def test_graphs_with_formats_of_another_processor_are_refused(dynamic: bool) -> None:
    model = torch.compile(
        lambda x: x.to(torch.float8_e5m2).float(), backend=torchair.get_npu_backend(), dynamic=dynamic
    )
    with pytest.raises(Exception, match=r"Cast: .* is FLOAT8_E5M2: Ascend910B1 \(Atlas A2\)"):
        model(torch.randn(4, 64).npu())


@pytest.mark.parametrize(
    ("name", "cores"), [("Ascend910B1", "24 48 24 48 192"), ("Ascend950PR_9589", "32 64 32 64 128")]
)
def test_cores_and_cache_are_those_of_the_chip(name: str, cores: str) -> None:
    code = (
        "import torch, torch_npu; torch.npu.set_device(0); p = torch.npu.get_device_properties(0); "
        "l = torch.npu.get_device_limit(0); "
        "print(p.cube_core_num, p.vector_core_num, l['cube_core_num'], l['vector_core_num'], p.L2_cache_size >> 20)"
    )
    done = on_host_as(name, "-c", code)
    assert done.stdout.strip() == cores, done.stdout + done.stderr


def test_a_processor_that_there_is_not() -> None:
    with pytest.raises(
        HostRuntimeError, match="ASCEND_GRAPH_HOST_SOC=Ascend910C: write one of Ascend910B1, Ascend910_9391, "
    ):
        host_environment({PROCESSOR_VARIABLE: "Ascend910C"}, None)


def test_the_name_is_what_the_runtime_gives() -> None:
    done = on_host_as("Ascend950PR_9589", "-c", "import torch_npu; print(torch_npu.npu.get_device_name())")
    assert done.stdout.split() == ["Ascend950PR_9589"], done.stderr
