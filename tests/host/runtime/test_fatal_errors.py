"""What could take the process down, or keep it for ever, is an error instead: each in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import preloaded
import pytest

from ascend_graph.host import build_operator_package
from ascend_graph.prototypes import parse_text


def run(code: str, seconds: float = 300, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return preloaded.run(
        command, capture_output=True, text=True, check=False, timeout=seconds, env={**os.environ, **environment}
    )


def test_npugraph_ex_refuses_tensors_of_the_cpu() -> None:
    """It rebuilds a graph's inputs as tensors of the npu backend, over the CPU's memory; work on that is not
    captured."""
    result = run(
        """
        import torch, torch_npu
        for make in (lambda: (torch.ones(3),), lambda: (torch.ones(3).npu(), torch.tensor(0), torch.tensor(1))):
            model = torch.compile(lambda *t: sum(t) * 2 + 1, backend="npugraph_ex", dynamic=False)
            try:
                print(model(*make()))
            except RuntimeError as error:
                print(error)
        x = torch.ones(3).npu()
        print(torch.compile(lambda t: t * 2 + 1, backend="npugraph_ex", dynamic=False)(x).tolist())
        """
    )
    assert result.returncode == 0, result.stderr
    one, many, right = result.stdout.splitlines()
    assert one.startswith(
        "aten::copy_: a Float tensor of shape [3] is the npu backend's, but lies in the memory of cpu"
    )
    assert many.startswith("aten::_foreach_copy_: a Long tensor of shape []")
    assert "specialize_float = True" in many
    assert "specialize_float" not in one
    assert right == "[3.0, 3.0, 3.0]"


PROTOTYPES = "".join(
    f"""
REG_OP({name})
    .INPUT(x, TensorType({{DT_FLOAT}}))
    .OUTPUT(y, TensorType({{DT_FLOAT}}))
    .OP_END_FACTORY_REG({name})
"""
    for name in ("SpinPython", "SpinCpp", "SpinAsc", "NullCpp", "GoodCpp")
)

KERNELS = """
#include "host_kernels.h"
static volatile int never = 0;
void host_kernels::SpinCpp(const SpinCppArgs&) { while (!never) {} }
void host_kernels::NullCpp(const NullCppArgs& a) { *static_cast<volatile float*>(nullptr) = a.x.as<float>()[0]; }
void host_kernels::GoodCpp(const GoodCppArgs& a) { a.y.as<float>()[0] = a.x.as<float>()[0] + 1; }
"""

LAUNCHED_KERNEL = """
#include "kernel_operator.h"
#include "host_kernels.h"
static volatile int never = 0;
extern "C" __global__ __aicore__ void spin_asc() { while (!never) {} }
void host_kernels::SpinAsc(const SpinAscArgs&) { spin_asc<<<2, nullptr, nullptr>>>(); }
"""

PYTHON_KERNEL = """
def spin(x):
    while True:
        try:
            while True:
                pass
        except Exception:
            continue
"""

PRELUDE = """
import re, torch, torch_npu, ascend_graph
names = "SpinPython", "SpinCpp", "SpinAsc", "NullCpp", "GoodCpp"
ops = {name: ascend_graph.register_op(name, shape="x[n] -> y[n]") for name in names}
def call(name):
    try:
        return getattr(torch.ops.ascend, re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower())(torch.ones(1).npu()).tolist()
    except RuntimeError as error:
        return " ".join(str(error).split())
    except KeyboardInterrupt:
        return "KeyboardInterrupt"
assert call("GoodCpp") == [2.0]
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("opp")
    kernels = directory / "kernels.cpp"
    kernels.write_text(KERNELS)
    launched = directory / "spin_asc.asc"
    launched.write_text(LAUNCHED_KERNEL)
    (directory / "endless_kernel.py").write_text(PYTHON_KERNEL)
    sys.path.insert(0, str(directory))
    try:
        import endless_kernel
    finally:
        sys.path.remove(str(directory))
    cpp = dict.fromkeys(("SpinCpp", "NullCpp", "GoodCpp"), kernels)
    prototypes = parse_text(PROTOTYPES).prototypes
    return build_operator_package(
        directory / "vendor", prototypes, {"SpinPython": endless_kernel.spin, "SpinAsc": launched, **cpp}
    )


@pytest.mark.slow
def test_kernels_of_packages_end_at_the_limit(package: Path) -> None:
    code = PRELUDE + "for name in ('SpinPython', 'SpinCpp', 'SpinAsc', 'NullCpp', 'GoodCpp'): print(call(name))"
    result = run(code, ASCEND_CUSTOM_OPP_PATH=str(package), ASCEND_GRAPH_KERNEL_TIMEOUT="1")
    assert result.returncode == 0, result.stderr
    python, cpp, asc, null, good = [line for line in result.stdout.splitlines() if line]
    limit = "did not end in 1 seconds, the limit of ASCEND_GRAPH_KERNEL_TIMEOUT"
    assert f"SpinPython: the Python kernel {limit}" in python
    assert f"SpinCpp: the host kernel {limit}" in cpp
    assert "kernel spin_asc, block " in asc
    assert f"of 2: {limit}" in asc
    assert "NullCpp: the host kernel accesses memory through a null or bad pointer" in null
    assert good == "[2.0]"


def test_ctrl_c_ends_kernels_of_packages(package: Path) -> None:
    code = PRELUDE + (
        "for name in ('SpinPython', 'SpinCpp', 'SpinAsc'):\n    print('running', flush=True)\n"
        "    print(call(name), flush=True)\n"
        "print(call('GoodCpp'))"
    )
    # What a shell starts in the background ignores SIGINT, and so do its children.
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n" + code
    environment = {**os.environ, "ASCEND_CUSTOM_OPP_PATH": str(package), "ASCEND_GRAPH_KERNEL_TIMEOUT": ""}
    process = preloaded.Process([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment)
    deadline = threading.Timer(300, process.kill)
    deadline.start()
    try:
        assert process.stdout is not None
        for _ in range(3):
            assert process.stdout.readline() == "running\n"
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(1.5)
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "KeyboardInterrupt\n"
        assert process.stdout.readline() == "[2.0]\n"
        assert process.wait(60) == 0
    finally:
        deadline.cancel()
        process.kill()
        process.communicate()


@pytest.mark.parametrize("value", ["soon", "0", "-1", "nan", "1e10"])
def test_a_malformed_limit_is_refused(value: str) -> None:
    message = f"ASCEND_GRAPH_KERNEL_TIMEOUT={value}: write seconds, from 0.001 to 1e9; unset it for no limit"
    launched = [sys.executable, "-m", "ascend_graph.host", "--quiet", "-c", "pass"]
    environment = {**os.environ, "ASCEND_GRAPH_KERNEL_TIMEOUT": value}
    result = subprocess.run(launched, capture_output=True, text=True, check=False, timeout=900, env=environment)
    assert (result.returncode, message in result.stderr) == (2, True), result.stderr
    acl = run(
        """
        import ctypes
        acl = ctypes.CDLL("libascendcl.so")
        acl.aclGetRecentErrMsg.restype = ctypes.c_char_p
        print(acl.aclInit(None), acl.aclGetRecentErrMsg().decode())
        """,
        ASCEND_GRAPH_KERNEL_TIMEOUT=value,
        ASCEND_GRAPH_HOST_BRIDGE="",
    )
    assert acl.stdout == f"100000 aclInit: {message}\n"


USE_WHEEL = {
    "torchair": """
        import torchair
        model = torch.compile(lambda t: t + 1, backend=torchair.get_npu_backend(), dynamic=False)
        model(x)
    """,
    "npugraph_ex": """
        model = torch.compile(lambda t: t + 1, backend="npugraph_ex", dynamic=False)
        model(x)
    """,
    "torchair, imported before the device is used": """
        import torchair.core._backend
    """,
}


@pytest.mark.parametrize("first", USE_WHEEL)
def test_signals_do_what_they_did_before_the_wheel_was_used(first: str) -> None:
    """TorchAir and npugraph_ex replace the handlers of both by one that ignores the signal from then on."""
    start, device = "import signal, os, torch, torch_npu", "x = torch.ones(3).npu()"
    use = textwrap.dedent(USE_WHEEL[first])
    ready = f"{use}\n{device}" if "before" in first else f"{device}\n{use}"
    end = """
handled = []
try:
    for _ in range(2):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(100000): pass
        except KeyboardInterrupt:
            handled.append("KeyboardInterrupt")
finally:
    print(handled, x.add(1).tolist(), flush=True)
os.kill(os.getpid(), signal.SIGTERM)
import time
time.sleep(60)
"""
    interruptible = "signal.signal(signal.SIGINT, signal.default_int_handler)"
    result = run("\n".join([start, interruptible, ready, end]))
    assert result.stdout == "['KeyboardInterrupt', 'KeyboardInterrupt'] [2.0, 2.0, 2.0]\n", result.stderr
    assert result.returncode == -signal.SIGTERM


def test_handlers_of_the_program_are_kept() -> None:
    result = run(
        """
        import os, signal, torch, torch_npu
        signal.signal(signal.SIGTERM, lambda *_: print("mine", flush=True))
        x = torch.ones(3).npu()
        torch.compile(lambda t: t + 1, backend="npugraph_ex", dynamic=False)(x)
        os.kill(os.getpid(), signal.SIGTERM)
        """
    )
    assert (result.returncode, result.stdout) == (0, "mine\n"), result.stderr


def test_swapped_memory_is_memory() -> None:
    """torch_npu begins it with a page of the host's memory, and takes as much as it asked for from there."""
    result = run(
        """
        import os, torch, torch_npu
        def total(count):
            made = [
                torch_npu.empty_with_swapped_memory([n], dtype=torch.float32, device=torch.device("npu:0"))
                for n in range(1, count)
            ]
            for n, tensor in enumerate(made): tensor.fill_(n)
            copy = torch.cat([tensor + 1 for tensor in made]).cpu()
            return copy.double().sum().item()
        print(total(60), total(400), flush=True)
        """
    )
    want = [sum((n + 1.0) ** 2 for n in range(count - 1)) for count in (60, 400)]
    assert (result.returncode, result.stdout.split()) == (0, [str(w) for w in want]), result.stderr


def test_a_process_ends_as_it_wants_to() -> None:
    """Whatever was used (a GE graph, a captured one, threads) does not change how a process ends."""
    use = """
        import atexit, os, sys, threading, torch, torch_npu, torchair
        atexit.register(lambda: print("atexit", flush=True))
        x = torch.ones(3).npu()
        def add(t): return torch.relu(t) + 1
        torch.compile(add, backend=torchair.get_npu_backend(), dynamic=False)(x)
        torch._dynamo.reset()
        torch.compile(add, backend="npugraph_ex", dynamic=False)(x)
        threads = [threading.Thread(target=lambda: x.add(1).sum().item()) for _ in range(4)]
        for thread in threads: thread.start()
    """
    for end, code, said in (("", 0, "atexit\n"), ("sys.exit(3)", 3, "atexit\n"), ("os._exit(4)", 4, "")):
        result = run(textwrap.dedent(use) + end)
        assert (result.returncode, result.stdout) == (code, said), result.stderr
