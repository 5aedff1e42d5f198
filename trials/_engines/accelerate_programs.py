"""Programs of accelerate: ``accelerate launch`` on one and two processes, precisions, sharding, big models."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from trials._engines.programs import Programs
from trials._engines.transformers_programs import CAUSAL, config_of, ids, made

PROGRAMS = Programs()
ROOT = Path(__file__).resolve().parents[2]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def last_json(command: list[str], **variables: str) -> Any:
    """Run a command with two devices, and return the JSON object that it prints last."""
    environment = os.environ | {"ASCEND_GRAPH_HOST_DEVICES": "2", "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}", "OMP_NUM_THREADS": "1", **variables}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=400, env=environment, cwd=ROOT)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        errors = [line for line in done.stderr.splitlines() if "Error" in line and "ERR99999" not in line]
        raise RuntimeError(f"ended with {done.returncode}: {' | '.join(errors[-6:])[:600]}")
    return json.loads(lines[-1])


def launched(device: str, processes: int, *options: str) -> Any:
    """Return what a training prints that ``accelerate launch`` starts."""
    with tempfile.TemporaryDirectory() as directory:
        config = {
            "compute_environment": "LOCAL_MACHINE", "mixed_precision": "no", "num_processes": processes, "num_machines": 1,
            "machine_rank": 0, "main_process_port": free_port(), "use_cpu": device == "cpu",
            "distributed_type": ("MULTI_CPU" if device == "cpu" else "MULTI_NPU") if processes > 1 else "NO",
        }  # fmt: skip
        (Path(directory) / "config.json").write_text(json.dumps(config))
        return last_json([
            sys.executable, "-m", "accelerate.commands.launch", "--config_file", f"{directory}/config.json",
            "--module", "trials._engines.accelerate_worker", "--device", device, *options,
        ])  # fmt: skip


LAUNCHES: dict[str, tuple[str, ...]] = {
    "plain": (),
    "bf16": ("--precision", "bf16"),
    "accumulation": ("--accumulate", "2"),
    "adafactor": ("--optimizer", "Adafactor"),
}
for one, chosen in LAUNCHES.items():
    for count in (1, 2):
        PROGRAMS.add(f"launch-{count}/{one}", lambda device, count=count, chosen=chosen: launched(device, count, *chosen))
PROGRAMS.add("launch-2/fsdp2", lambda device: launched(device, 2, "--fsdp"))
PROGRAMS.add("launch-2/fsdp2-bf16", lambda device: launched(device, 2, "--fsdp", "--precision", "bf16"))


@PROGRAMS("launch-2/fp16", compared=False)
def fp16(device: str) -> None:
    """Losses with a GradScaler are near those of float32."""
    got, want = launched(device, 2, "--precision", "fp16"), launched("cpu", 2)
    assert all(abs(a - b) < 0.05 for a, b in zip(got["losses"], want["losses"], strict=True)), (got, want)


@PROGRAMS("test")
def own_test(device: str) -> str:
    """Accelerate's own script of tests, on one process."""
    if device == "cpu":
        return "passed"
    from accelerate.test_utils import path_in_accelerate_package

    script = path_in_accelerate_package("test_utils", "scripts", "test_script.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=400)
    if done.returncode:
        raise RuntimeError(done.stderr[-600:])
    return "passed"


@PROGRAMS("big-models")
def big_models(device: str) -> Any:
    """Weights that are placed on devices while they are read, offloaded to the CPU and to disk."""
    from accelerate import cpu_offload, disk_offload, init_empty_weights, load_checkpoint_and_dispatch

    tokens = ids(1, 6).to(device)
    found = []
    with tempfile.TemporaryDirectory() as directory:
        made(CAUSAL["llama"], "cpu").save_pretrained(directory)
        with init_empty_weights():
            model = type(made(CAUSAL["llama"], "cpu"))(config_of(CAUSAL["llama"]))
        model = load_checkpoint_and_dispatch(model, f"{directory}/model.safetensors", device_map={"": 0 if device == "npu" else "cpu"})
        with torch.no_grad():
            found.append(model.eval()(tokens).logits.cpu())
            if device == "npu":
                found.append(cpu_offload(made(CAUSAL["llama"], "cpu"), execution_device=torch.device("npu:0"))(tokens).logits.cpu())
                found.append(disk_offload(made(CAUSAL["llama"], "cpu"), f"{directory}/off", execution_device=torch.device("npu:0"))(tokens).logits.cpu())
            else:
                found += found * 2
    return found
