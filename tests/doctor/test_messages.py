"""``doctor --message``: the messages of public reports, of torch and of this package lead to their causes, and
nothing else does."""

from __future__ import annotations

import json
import os
import re
import string
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from ascend_graph.cli import main
from ascend_graph.doctor.messages import diagnose, known_messages
from ascend_graph.environment import toolkit_directory

#: Messages as they were reported (the numbers are those of public issues), and the entry that each leads to.
REPORTED = [
    # vllm-project/vllm-ascend 9258, 5056, 7095; vllm-project/vllm 8054
    (
        (
            "RuntimeError: aclnnAddRmsNormBias or aclnnAddRmsNormBiasGetWorkspaceSize not in libopapi.so, "
            "or libopapi.sonot found."
        ),
        "function in no library",
    ),
    (
        (
            "(Worker_DP0_TP5_EP5 pid=566147) ERROR 05-18 08:55:27 [multiproc_executor.py:962] RuntimeError: "
            "aclnnAddRmsNormBias or aclnnAddRmsNormBiasGetWorkspaceSize not in libopapi.so, or libopapi.sonot found."
        ),
        "function of an operator package, in a worker",
    ),
    (
        (
            "(EngineCore_DP0 pid=30023) ERROR 12-16 01:53:33 [core.py:845] RuntimeError: aclnnLightningIndexer or "
            "aclnnLightningIndexerGetWorkspaceSize not in libopapi.so, or libopapi.sonot found."
        ),
        "function of an operator package, in a worker",
    ),
    # Ascend/pytorch 35, 99; vllm-project/vllm-ascend 117, 1249, 152
    (
        (
            "/home/ma-user/lib/python3.9/site-packages/torch_npu/lib/libtorch_npu.so: undefined symbol: "
            "_ZN5torch10ValueErrorC1EPKcz'!"
        ),
        "extension of another torch",
    ),
    (
        (
            "WARNING:root:Failed to import 'x.x_C': PATH/x_C.cpython-310-aarch64-linux-gnu.so: undefined symbol: "
            "_ZN5torch7LibraryC1ENS0_4KindESsSt8optionalIN3c1011DispatchKeyEEPKcj. All custom ops will be disabled."
        ),
        "extension of another torch",
    ),
    (
        (
            "ImportError: /usr/lib/libtorch_npu.so: undefined symbol: "
            "_ZN3atb15CreateOperationINS_5infer14GroupTopkParamEEEiRKT_PPNS_9OperationE"
        ),
        "libraries of ATB",
    ),
    (
        (
            " OSError: /home/mtp/Ascend/nnal/atb/latest/atb/cxx_abi_1/lib/libtbe_adapter.so: undefined symbol: "
            "_ZN3Mki2DlC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEb"
        ),
        "libraries of ATB",
    ),
    ("ImportError: libatb.so: cannot open shared object file: No such file or directory", "libraries of ATB"),
    ("ImportError: /x/libtorch_npu.so: undefined symbol: aclrtGetStreamAttribute", "CANN of another version"),
    ("ImportError: /x/libtorch_npu.so: undefined symbol: _ZN2ge7Session8LoadGraphEj", "CANN of another version"),
    # opendatalab/MinerU 2537; vllm-project/vllm-ascend 1440; flagos-ai/vllm-plugin-FL 77
    (
        "90.61 ImportError: libhccl.so: cannot open shared object file: No such file or directory",
        "CANN is not selected",
    ),
    (
        (
            "ImportError: libhccl.so: cannot open shared object file: No such file or directory. "
            "Please check that the cann package is installed. Please run 'source set_env.sh' in the CANN installation "
            "path."
        ),
        "CANN is not selected",
    ),
    (
        (
            "libascend_hal.so: cannot open shared object file: No such file or directory\n"
            "RuntimeError: Failed to load the backend extension: torch_npu. "
            "You can disable extension auto-loading with TORCH_DEVICE_BACKEND_AUTOLOAD=0."
        ),
        "driver of the NPU",
    ),
    (
        "ImportError: libtorch_npu.so: cannot open shared object file: No such file or directory",
        "extension before torch",
    ),
    (
        "ImportError: libtorch_cuda_cu.so: cannot open shared object file: No such file or directory",
        "torch built for CUDA",
    ),
    ("ImportError: libGL.so.1: cannot open shared object file: No such file or directory", "library that is not there"),
    (
        "RuntimeError: Failed to load the backend extension: torch_npu. You can disable extension auto-loading",
        "torch_npu does not load",
    ),
    ("RuntimeError: Two accelerators cannot be used at the same time in PyTorch: npu and npu", "two accelerators"),
    # vllm-project/vllm-ascend 1895, 1962, 3090, 11999
    (
        (
            "NotImplementedError: _C::rotary_embedding: attempted to run this operator with Meta tensors, "
            "but there was no fake impl or Meta kernel registered. You may have run into this"
        ),
        "operator without a meta function",
    ),
    (
        "torch._subclasses.fake_tensor.UnsupportedOperatorException: _C.rotary_embedding.default",
        "operator without a meta function",
    ),
    (
        "torch._dynamo.exc.Unsupported: unsupported operator: _C.rotary_embedding.default",
        "operator without a meta function",
    ),
    (
        "NotImplementedError: Could not run 'my_ops::add' with arguments from the 'Meta' backend.",
        "operator without a meta function",
    ),
    (
        "RuntimeError: Cannot access data pointer of Tensor (e.g. FakeTensor, FunctionalTensor).",
        "data of a tensor that is only traced",
    ),
    (
        "AttributeError: '_OpNamespace' '_C_ascend' object has no attribute 'weak_ref_tensor'",
        "operator that is not defined",
    ),
    (
        "RuntimeError: Trying to override a python impl for DispatchKey.Meta on operator npu_define::allgather",
        "two Python implementations of one operator",
    ),
    (
        (
            "RuntimeError: Only a single TORCH_LIBRARY can be used to register the namespace my_ops; "
            "please put all of your definitions in a single TORCH_LIBRARY block."
        ),
        "library loaded twice",
    ),
    # flagos-ai/FlagTree 376
    (
        (
            "ImportError: /usr/lib64/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by "
            "/usr/local/lib/python3.11/site-packages/triton/_C/libtriton.so)"
        ),
        "C++ library too old",
    ),
    (
        "/lib64/libc.so.6: version `GLIBC_2.34' not found (required by /x/torch_npu/lib/libtorch_npu.so)",
        "system too old",
    ),
    # vllm-project/vllm-ascend 516; 4502; Ascend/pytorch 24
    ("AssertionError: Torch not compiled with CUDA enabled", "program for CUDA"),
    (
        (
            "RuntimeError: Cannot re-initialize NPU in forked subprocess. "
            "To use NPU with multiprocessing, you must use the 'spawn' start method"
        ),
        "NPU in a forked process",
    ),
    ("ModuleNotFoundError: No module named 'torch_npu._C'", "torch_npu next to its sources"),
    ("ModuleNotFoundError: No module named 'torch_npu'", "no torch_npu"),
    # torch.export.load, torch.jit.load and torch.multiprocessing.spawn in a process without the registrations
    (
        (
            "torch._export.serde.serialize.SerializeError: We failed to resolve torch.ops.ascend.row_scale.default to "
            "an "
            "operator. If it's a custom op/custom triton op, this is usually because"
        ),
        "saved program with an operator that is not registered",
    ),
    (
        (
            "RuntimeError: We ran into an error when deserializing the saved file. "
            "Please check the warnings above for possible errors."
        ),
        "saved program with an operator that is not registered",
    ),
    (
        "RuntimeError: \nUnknown builtin op: ascend::row_scale.\nCould not find any similar ops to ascend::row_scale.",
        "saved program with an operator that is not registered",
    ),
    (
        "AttributeError: '_OpNamespace' 'ascend' object has no attribute 'row_scale'",
        "operator that is not registered in this process",
    ),
    # gpustack/gpustack 1226; vllm-project/vllm-ascend 1383, 4859, 2763, 800, 2698, 4284, 692
    (
        (
            "Get regInfo failed, The binary_info_config.json of socVersion [ascend310p] does not support opType "
            "[RotaryPositionEmbedding]."
        ),
        "operator that has no kernel for this SoC",
    ),
    (
        (
            "EZ3002: [PID: 141730] 2025-05-14-07:42:33.234.136 Optype [TransData] of Ops kernel [AIcoreEngine] is "
            "unsupported. Reason: [tbe-custom]:op type TransData is not found in this op store."
        ),
        "operator that has no kernel for this SoC",
    ),
    ("RuntimeError: call aclnnInplaceZero failed, error code is 561103", "first phase of an aclnn function"),
    ("RuntimeError: call aclnnSort failed, detail:EZ1001, error code is 161002", "arguments of an aclnn function"),
    ("RuntimeError: ACL stream synchronize failed, error code:507035", "kernel that fails on the device"),
    (
        "RuntimeError: NPU function error: aclrtGetCurrentContext(&used_devices[local_device]), error code is 107002",
        "no device in this thread",
    ),
    (
        "DrvMngGetConsoleLogLevel failed. (g_conLogLevel=3)\ndcmi module initialize failed. ret is -8005",
        "device that is not there",
    ),
    ("NPU function error: c10_npu::SetDevice(device_id_), error code is 507033", "device that is not there"),
    (
        (
            "NotImplementedError: Could not run 'ascend::scaled_add' with arguments from the 'CPU' backend. This could be "
            "because the operator doesn't exist for this backend"
        ),
        "tensors on the CPU",
    ),
    ("RuntimeError: aclnnAdd: error code is 107025", "not in a capture"),
    (
        "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 60.97 GiB total capacity)",
        "memory of the device",
    ),
    (
        (
            "EH9999: [PID: 1439] [Init][PlatformInfo]init runtime platform info failed, SocVersion = Ascend910B2\n"
            " GEInitialize failed. ge result = 4294967295"
        ),
        "operator compiler of CANN does not start",
    ),
    (
        "NotImplementedError: torch.ops.prims.conj.default ge_converter is not implemented!",
        "operator without a converter",
    ),
    (
        (
            "RuntimeError: Failed to auto-generated converter for while_loop to AscendIR: while_loop is not an instance of "
            "OpOverload and does not support"
        ),
        "subgraph in a compiled program",
    ),
    (
        (
            "RuntimeError: Failed to auto-generated converter for triton_kernel_wrapper_functional to AscendIR: "
            "triton_kernel_wrapper_functional is not an instance of OpOverload and does not support"
        ),
        "launch of a Triton kernel in a GE graph",
    ),
    (
        "TypeError: '>=' not supported between instances of 'ValuePack' and 'int'",
        "size that is not known when a graph is compiled",
    ),
    (
        "OSError: /opp/vendors/x/libops.so: undefined symbol: _ZN12ascendc_host7LaidOutIJLm1496EEE2soE",
        "kernels without their host runtime",
    ),
    (
        (
            "the host runtime has no kernel for GE operator MlaProlog (MlaProlog, MlaProlog_1); "
            "write one in an operator package"
        ),
        "graph without a kernel on the host",
    ),
    # hiyouga/LlamaFactory 5071; vllm-project/vllm-ascend 1955
    (
        (
            "EI0006: 2024-08-05-18:15:21.270.506 Getting socket times out. "
            "Reason: Remote Rank did not send the data in time."
        ),
        "ranks that do not meet",
    ),
    ("[Wait][LinkEstablish]wait socket establish timeout, role[1] rank[12] timeout[120]", "ranks that do not meet"),
    ("EZ9999: Inner Error!", "call into CANN"),
    # This package's opcheck of a gradient that calls torch.where(x > 0, 1.0, slope)
    (
        (
            "AssertionError: Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with "
            "'allow_non_fake_inputs'. Found in aten.where.self(FakeTensor(..., device='npu:0', size=(33,), dtype=torch.bool)"
        ),
        "constant in a gradient",
    ),
]


@pytest.mark.parametrize(("message", "name"), REPORTED, ids=[f"{n}-{name}" for n, (_, name) in enumerate(REPORTED)])
def test_reported_messages_lead_to_their_cause(message: str, name: str) -> None:
    found = diagnose(message, os.environ)
    assert [diagnosis.name for diagnosis in found] == [name]
    assert found[0].line in message
    assert "{" not in found[0].cause, "a group of the pattern is not filled in"


def test_every_entry_is_reached_and_its_texts_name_groups_that_it_has() -> None:
    assert {known.name for known in known_messages()} == {name for _, name in REPORTED}
    for known in known_messages():
        groups = {name.rstrip("0123456789") for name in re.compile(known.pattern).groupindex}
        for text in (known.cause, known.check, known.fix):
            named = {field for _, field, _, _ in string.Formatter().parse(text) if field}
            assert named <= groups, f"{known.name}: {named - groups}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "step 107002: loss 0.5, 507015 tokens, pid 207000",
        "RuntimeError: shape '[3]' is invalid for input of size 2",
        "INFO: worker 3 loaded aclnnAdd from libopapi.so",
        "KeyError: 'weights'",
        "\0\x1b[31m\ud800",
        "ValueError: {not a field} {0} {}",
    ],
)
def test_what_is_not_known_is_said_so(text: str) -> None:
    assert diagnose(text, os.environ) == []
    result = CliRunner().invoke(main, ["doctor", "--message", "-"], input=text.encode(errors="replace"))
    assert result.exit_code == 1
    assert result.output.startswith("not known: ")


def test_a_log_names_each_cause_once_in_its_order_and_no_general_one() -> None:
    log = "\n".join(
        [
            "INFO starting",
            "\x1b[31mWARNING\x1b[0m: x/my_ops.so: undefined symbol: _ZN2at4_ops9add_TensorE",
            *["AttributeError: '_OpNamespace' 'my_ops' object has no attribute 'add'"] * 50,
            "RuntimeError: Failed to load the backend extension: torch_npu.",
            "EZ9999: Inner Error!",
        ]
    )
    found = diagnose(log, os.environ)
    assert [d.name for d in found] == ["extension of another torch", "operator that is not defined"]
    assert found[0].line == "WARNING: x/my_ops.so: undefined symbol: _ZN2at4_ops9add_TensorE"


def test_a_log_of_any_length_is_read_in_time() -> None:
    start = time.process_time()
    assert diagnose("worker pid=1 aclnn " * 200_000, os.environ) == []
    log = "INFO worker step\n" * 200_000 + "AssertionError: Torch not compiled with CUDA enabled"
    assert diagnose(log, os.environ)
    assert time.process_time() - start < 20


def test_what_this_machine_says_of_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that torch_npu did not find, and that an operator package in the working directory has."""
    directory = tmp_path / "vendors/mine/op_api/lib"
    directory.mkdir(parents=True)
    source = tmp_path / "f.cpp"
    source.write_text(
        'extern "C" int aclnnFound() { return 0; }\nextern "C" int aclnnFoundGetWorkspaceSize() { return 0; }'
    )
    subprocess.run(["g++", "-shared", "-fPIC", "-o", str(directory / "libcust_opapi.so"), str(source)], check=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ASCEND_CUSTOM_OPP_PATH", raising=False)
    message = "RuntimeError: aclnnFound or aclnnFoundGetWorkspaceSize not in libopapi.so, or libopapi.sonot found."
    result = CliRunner().invoke(main, ["doctor", "--message", message, "--format", "json"])
    assert result.exit_code == 0
    (known,) = json.loads(result.output)["known"]
    assert known["here"][0]["fix"].startswith(f"export ASCEND_CUSTOM_OPP_PATH={tmp_path}/vendors/mine")


def test_the_message_of_torch_npu_without_cann_is_known() -> None:
    """As it is printed here and now."""
    toolkit = str(toolkit_directory())
    environment = {n: v for n, v in os.environ.items() if not v.startswith(toolkit) and n != "ASCEND_GRAPH_HOST"}
    result = subprocess.run(
        [sys.executable, "-c", "import torch"], capture_output=True, text=True, check=False, env=environment
    )
    assert result.returncode == 1
    found = diagnose(result.stderr, environment)
    assert [d.name for d in found] == ["CANN is not selected"]
    assert found[0].here[0].fix == "ascend-graph run script.py"


def test_a_command_that_meets_a_known_error_says_its_cause(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("raise OSError('/x/my.so: undefined symbol: _ZN2at4_ops9add_TensorE')")
    command = [sys.executable, "-m", "ascend_graph.cli", "check", str(tmp_path / "broken.py")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "was compiled against another torch or torch_npu" in result.stderr
    assert "Traceback" not in result.stderr
