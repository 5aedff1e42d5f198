"""A training by accelerate, started by ``accelerate launch``: the main process prints losses and the sum of the parameters."""

from __future__ import annotations

import argparse
import json
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import FullyShardedDataParallelPlugin, set_seed

from trials._engines.transformers_programs import CAUSAL, ids, made

#: Tokens of the training, which all ranks share, and the learning rate.
ROWS, RATE = (16, 8), 1e-2


def fully_sharded() -> FullyShardedDataParallelPlugin:
    return FullyShardedDataParallelPlugin(
        fsdp_version=2,
        auto_wrap_policy="transformer_based_wrap",
        transformer_cls_names_to_wrap=["LlamaDecoderLayer"],
        state_dict_type="FULL_STATE_DICT",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--precision", default="no")
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--fsdp", action="store_true")
    parser.add_argument("--device", required=True)
    parser.add_argument("--optimizer", default="AdamW")
    arguments = parser.parse_args()
    options: dict[str, Any] = {"fsdp_plugin": fully_sharded()} if arguments.fsdp else {}
    accelerator = Accelerator(
        mixed_precision=arguments.precision,
        gradient_accumulation_steps=arguments.accumulate,
        cpu=arguments.device == "cpu",
        **options,
    )
    assert accelerator.device.type == arguments.device, accelerator.device
    set_seed(0)
    model = made(CAUSAL["llama"], "cpu")
    optimizer = getattr(torch.optim, arguments.optimizer)(model.parameters(), lr=RATE)
    data = torch.utils.data.DataLoader(ids(*ROWS), batch_size=2, shuffle=False)
    model, optimizer, data = accelerator.prepare(model, optimizer, data)
    losses = []
    for batch in data:
        with accelerator.accumulate(model):
            loss = model(input_ids=batch, labels=batch).loss
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        losses.append(accelerator.gather(loss.detach()).float().mean().item())
    state = accelerator.get_state_dict(model)
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        total = sum(float(one.float().abs().sum()) for one in state.values())
        print(json.dumps({"losses": losses, "parameters": total, "processes": accelerator.num_processes}), flush=True)
    accelerator.end_training()


if __name__ == "__main__":
    main()
