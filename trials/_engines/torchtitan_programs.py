"""Programs of torchtitan: its trainer on two ranks. Ways to share out the same batches give the same losses."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import torchtitan  # noqa: F401 - that it is installed
from tokenizers import Tokenizer, models, pre_tokenizers

from trials._engines.programs import Programs

PROGRAMS = Programs()
STEPS = 3


@functools.cache
def directory() -> Path:
    """Return a directory with a tokenizer, texts, and the weights that every training begins with."""
    path = Path(tempfile.mkdtemp(prefix="torchtitan"))
    words = {"<unk>": 0, "<s>": 1, "</s>": 2} | {f"w{i}": i for i in range(3, 2000)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(["<s>", "</s>"])
    tokenizer.save(str(path / "tokenizer.json"))
    (path / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<s>", "eos_token": "</s>"}))
    (path / "texts").mkdir()
    rows = [" ".join(f"w{3 + (7 * row + 3 * column * column) % 1900}" for column in range(40)) for row in range(64)]
    (path / "texts/data.json").write_text("\n".join(json.dumps({"text": row}) for row in rows))
    training(path, 1, "--checkpoint.create_seed_checkpoint")
    return path


def training(path: Path, ranks: int, *options: str) -> list[float]:
    """Return the losses that torchtitan's trainer prints."""
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), "--local-ranks-filter", "0",
        "--role", "rank", "--tee", "3", "-m", "torchtitan.train", "--job.dump_folder", str(path), "--model.hf_assets_path", str(path),
        "--training.dataset_path", str(path / "texts"), "--training.seq_len", "32", "--training.steps", str(STEPS),
        "--training.mixed_precision_param", "float32", "--metrics.log_freq", "1", "--metrics.disable_color_printing",
        "--checkpoint.enable", "--checkpoint.load_step", "0", *options,
    ]  # fmt: skip
    environment = os.environ | {
        "ASCEND_GRAPH_HOST_DEVICES": "2",
        "OMP_NUM_THREADS": "1",
        "HF_DATASETS_OFFLINE": "1",
        "HF_HOME": str(path / "hf"),
    }
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=400, env=environment, cwd=path)
    output = done.stdout + done.stderr
    if done.returncode:
        errors = [line for line in output.splitlines() if "Error" in line and "ERR99999" not in line]
        raise RuntimeError(f"ended with {done.returncode}: {' | '.join(errors[-4:])[:600]}")
    return [float(one) for one in re.findall(r"loss:\s+([0-9.]+)", output)]


def declare(name: str, *, reference: tuple[int, tuple[str, ...]], ranks: int, options: tuple[str, ...]) -> None:
    """Declare a training whose losses are those of another one with the same batches."""

    def run(device: str) -> list[float]:
        count, chosen = reference if device == "cpu" else (ranks, options)
        losses = training(directory(), count, "--checkpoint.load_only", *chosen)
        assert len(losses) == STEPS, losses
        return losses

    PROGRAMS.add(name, run)


ALONE = (1, ("--training.local_batch_size", "4"))
REPLICATED = (
    2,
    (
        "--training.local_batch_size",
        "2",
        "--parallelism.data_parallel_replicate_degree",
        "2",
        "--parallelism.data_parallel_shard_degree",
        "1",
    ),
)
declare("tp", reference=ALONE, ranks=2, options=(*ALONE[1], "--parallelism.tensor_parallel_degree", "2"))
declare(
    "fsdp2",
    reference=REPLICATED,
    ranks=2,
    options=("--training.local_batch_size", "2", "--parallelism.data_parallel_shard_degree", "2"),
)
declare(
    "pp",
    reference=ALONE,
    ranks=2,
    options=(
        *ALONE[1],
        "--parallelism.pipeline_parallel_degree",
        "2",
        "--parallelism.pipeline_parallel_microbatch_size",
        "2",
    ),
)
declare("cp", reference=ALONE, ranks=2, options=(*ALONE[1], "--parallelism.context_parallel_degree", "2"))
