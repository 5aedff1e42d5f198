"""Programs of PEFT: adapters trained for two steps, merged, saved and loaded."""

from __future__ import annotations

import tempfile
from typing import Any

import peft
import torch

from trials._engines.programs import Programs, named, tensors_of
from trials._engines.transformers_programs import CAUSAL, ids, made

PROGRAMS = Programs()
LINEAR = ["q_proj", "v_proj"]
CAUSAL_LM = {"task_type": "CAUSAL_LM"}

ADAPTERS: dict[str, tuple[str, dict[str, Any]]] = {
    "lora": ("LoraConfig", {"r": 4, "target_modules": LINEAR}),
    "rslora": ("LoraConfig", {"r": 4, "target_modules": "all-linear", "use_rslora": True}),
    "dora": ("LoraConfig", {"r": 4, "target_modules": LINEAR, "use_dora": True}),
    "pissa": ("LoraConfig", {"r": 4, "target_modules": LINEAR, "init_lora_weights": "pissa"}),
    "olora": ("LoraConfig", {"r": 4, "target_modules": LINEAR, "init_lora_weights": "olora"}),
    "embeddings": ("LoraConfig", {"r": 4, "target_modules": ["embed_tokens"], "modules_to_save": ["lm_head"]}),
    "adalora": ("AdaLoraConfig", {"init_r": 4, "target_r": 2, "total_step": 10, "target_modules": LINEAR}),
    "ia3": ("IA3Config", {"target_modules": ["k_proj", "v_proj", "down_proj"], "feedforward_modules": ["down_proj"]}),
    "loha": ("LoHaConfig", {"r": 4, "target_modules": LINEAR}),
    "lokr": ("LoKrConfig", {"r": 4, "target_modules": LINEAR}),
    "oft": ("OFTConfig", {"oft_block_size": 8, "target_modules": LINEAR}),
    "boft": ("BOFTConfig", {"boft_block_size": 8, "target_modules": LINEAR}),
    "vera": ("VeraConfig", {"r": 4, "target_modules": ["q_proj", "o_proj"]}),
    "fourierft": ("FourierFTConfig", {"n_frequency": 8, "target_modules": LINEAR}),
    "hra": ("HRAConfig", {"r": 4, "target_modules": LINEAR}),
    "prefix": ("PrefixTuningConfig", {"num_virtual_tokens": 3}),
    "prompt": ("PromptTuningConfig", {"num_virtual_tokens": 3}),
    "p-tuning": ("PromptEncoderConfig", {"num_virtual_tokens": 3, "encoder_hidden_size": 16}),
    "layernorm": ("LNTuningConfig", {"target_modules": ["input_layernorm"]}),
}  # fmt: skip
#: Adapters that have no weights of their own to put into the model's.
NOT_MERGED = ("prefix", "prompt", "p-tuning")


def trained(name: str, device: str, dtype: torch.dtype = torch.float32) -> Any:
    """Return losses, trained parameters, and the logits of the merged, and of the saved and loaded model."""
    kind, options = ADAPTERS[name]
    base = made(CAUSAL["llama"], "cpu", dtype)
    torch.manual_seed(0)
    # Made on the CPU, where random weights are the same for both devices.
    model = peft.get_peft_model(base, getattr(peft, kind)(**options, **CAUSAL_LM)).to(device)
    tokens = ids(2, 8).to(device)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    losses = []
    for _ in range(2):
        loss = model.eval()(input_ids=tokens, labels=tokens).loss
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
        optimizer.zero_grad()
    found = {"losses": losses, **named((key, p) for key, p in model.named_parameters() if p.requires_grad)}
    with torch.no_grad(), tempfile.TemporaryDirectory() as directory:
        found["logits"] = model(input_ids=tokens).logits
        model.save_pretrained(directory)
        loaded = peft.PeftModel.from_pretrained(made(CAUSAL["llama"], device, dtype), directory).eval()
        if name not in ("pissa", "olora"):
            found["loaded"] = loaded(input_ids=tokens).logits
        if name not in NOT_MERGED:
            found["merged"] = model.merge_and_unload()(input_ids=tokens).logits
    if dtype != torch.float32:
        # Adapters are float32, and what they learn is as exact as the model.
        return [torch.tensor(losses).to(dtype), *(one.to(dtype) for one in tensors_of(found))]
    return found


for one in ADAPTERS:
    PROGRAMS.add(one, lambda device, one=one: trained(one, device))
PROGRAMS.add("lora-bfloat16", lambda device: trained("lora", device, torch.bfloat16))
PROGRAMS.add("dora-bfloat16", lambda device: trained("dora", device, torch.bfloat16))
