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

from trials._engines.accelerate_worker import RATE, ROWS
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
    environment = os.environ | {
        "ASCEND_GRAPH_HOST_DEVICES": "2",
        "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}",
        "OMP_NUM_THREADS": "1",
        **variables,
    }
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=400, env=environment, cwd=ROOT)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        errors = [line for line in done.stderr.splitlines() if "Error" in line and "ERR99999" not in line]
        raise RuntimeError(f"ended with {done.returncode}: {' | '.join(errors[-6:])[:600]}")
    return json.loads(lines[-1])


def launched(processes: int, *options: str) -> Any:
    """Return what a training prints that ``accelerate launch`` starts."""
    with tempfile.TemporaryDirectory() as directory:
        config = {
            "compute_environment": "LOCAL_MACHINE", "mixed_precision": "no", "num_processes": processes, "num_machines": 1,
            "machine_rank": 0, "main_process_port": free_port(), "use_cpu": False,
            "distributed_type": "MULTI_NPU" if processes > 1 else "NO",
        }  # fmt: skip
        (Path(directory) / "config.json").write_text(json.dumps(config))
        return last_json([
            sys.executable, "-m", "accelerate.commands.launch", "--config_file", f"{directory}/config.json",
            "--module", "trials._engines.accelerate_worker", "--device", "npu", *options,
        ])  # fmt: skip


def reference(batch: int, accumulate: int) -> Any:
    """Return the same training in plain PyTorch on the CPU in float32, on one process with the batches of all ranks."""
    model = made(CAUSAL["llama"], "cpu")
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    losses = []
    for step, tokens in enumerate(ids(*ROWS).split(batch), 1):
        loss = model(input_ids=tokens, labels=tokens).loss
        (loss / accumulate).backward()
        losses.append(loss.item())
        if step % accumulate == 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    return {"losses": losses, "parameters": sum(float(one.detach().abs().sum()) for one in model.state_dict().values())}


def declare_launch(name: str, processes: int, *options: str, accumulate: int = 1) -> None:
    """Declare a training; in half precision its losses are near those of float32."""
    half = "--precision" in options

    def run(device: str) -> Any:
        found = reference(2 * processes, accumulate) if device == "cpu" else launched(processes, *options)
        return torch.tensor(found["losses"]).bfloat16() if half else [found["losses"], found["parameters"]]

    PROGRAMS.add(f"launch-{processes}/{name}", run)


declare_launch("plain", 1)
declare_launch("bf16", 1, "--precision", "bf16")
declare_launch("plain", 2)
declare_launch("accumulation", 2, "--accumulate", "2", accumulate=2)
declare_launch("fp16", 2, "--precision", "fp16")
declare_launch("fsdp2", 2, "--fsdp")
declare_launch("fsdp2-bf16", 2, "--fsdp", "--precision", "bf16")


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
        whole = made(CAUSAL["llama"], "cpu")
        whole.save_pretrained(directory)
        with init_empty_weights():
            model = type(whole)(config_of(CAUSAL["llama"]))
        model = load_checkpoint_and_dispatch(
            model, f"{directory}/model.safetensors", device_map={"": 0 if device == "npu" else "cpu"}
        )
        with torch.no_grad():
            found.append(model.eval()(tokens).logits.cpu())
            if device == "npu":
                found.append(
                    cpu_offload(made(CAUSAL["llama"], "cpu"), execution_device=torch.device("npu:0"))(
                        tokens
                    ).logits.cpu()
                )
                found.append(
                    disk_offload(
                        made(CAUSAL["llama"], "cpu"), f"{directory}/off", execution_device=torch.device("npu:0")
                    )(tokens).logits.cpu()
                )
            else:
                found += found * 2
    return found
