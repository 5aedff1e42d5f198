"""Programs of transformers: families of models, generation, training, pipelines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
import transformers

from trials._engines.programs import Programs, named

PROGRAMS = Programs()

#: Sizes that the configurations of language models share.
SMALL = {
    "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "head_dim": 8, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "decoder_sparse_step": 1}


@dataclass(frozen=True)
class Family:
    """A family of models: its class, and what its configuration is told besides ``SMALL``."""

    model: str
    config: str
    options: dict[str, Any] = field(default_factory=dict)
    attention: bool = True
    #: Members of ``SMALL`` that it has not.
    without: tuple[str, ...] = ()


CAUSAL = {
    "llama": Family("LlamaForCausalLM", "LlamaConfig"),
    "qwen3": Family("Qwen3ForCausalLM", "Qwen3Config"),
    "mixtral": Family("MixtralForCausalLM", "MixtralConfig", {"num_local_experts": 4}),
    "qwen3_moe": Family("Qwen3MoeForCausalLM", "Qwen3MoeConfig", EXPERTS),
    "gemma2": Family("Gemma2ForCausalLM", "Gemma2Config", {"query_pre_attn_scalar": 8, "sliding_window": 4}),
    "gemma3": Family("Gemma3ForCausalLM", "Gemma3TextConfig", {"query_pre_attn_scalar": 8, "sliding_window": 4}),
    "gpt2": Family("GPT2LMHeadModel", "GPT2Config", {"n_embd": 32, "n_layer": 2, "n_head": 4}),
    "opt": Family("OPTForCausalLM", "OPTConfig", {"ffn_dim": 48, "word_embed_proj_dim": 32}),
    "phi3": Family("Phi3ForCausalLM", "Phi3Config"),
    "falcon": Family("FalconForCausalLM", "FalconConfig", without=("head_dim",)),
    "bloom": Family("BloomForCausalLM", "BloomConfig", {"n_layer": 2, "n_head": 4}, attention=False),
    "gpt_neox": Family("GPTNeoXForCausalLM", "GPTNeoXConfig"),
    "deepseek_v3": Family("DeepseekV3ForCausalLM", "DeepseekV3Config", {
        "q_lora_rank": 8, "kv_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 4, "v_head_dim": 8, "n_routed_experts": 4,
        "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1, "moe_intermediate_size": 16, "first_k_dense_replace": 1, "num_key_value_heads": 4,
    }, without=("head_dim",)),
    "gpt_oss": Family("GptOssForCausalLM", "GptOssConfig", {"num_local_experts": 4, "sliding_window": 4}, attention=False),
    "olmo2": Family("Olmo2ForCausalLM", "Olmo2Config"),
    "cohere2": Family("Cohere2ForCausalLM", "Cohere2Config", {"sliding_window": 4}),
    "glm4": Family("Glm4ForCausalLM", "Glm4Config"),
    "mamba": Family("MambaForCausalLM", "MambaConfig", {"state_size": 4}, attention=False),
    "mamba2": Family("Mamba2ForCausalLM", "Mamba2Config", {"state_size": 4, "num_heads": 8, "head_dim": 8, "n_groups": 2, "chunk_size": 4}, attention=False),
    "qwen3_next": Family("Qwen3NextForCausalLM", "Qwen3NextConfig", {**EXPERTS, "shared_expert_intermediate_size": 16, "linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 8, "linear_value_head_dim": 8, "layer_types": ["linear_attention", "full_attention"]}, attention=False),
    "recurrent_gemma": Family("RecurrentGemmaForCausalLM", "RecurrentGemmaConfig", {"lru_width": 32, "num_hidden_layers": 3, "attention_window_size": 8}, attention=False),
    "falcon_h1": Family("FalconH1ForCausalLM", "FalconH1Config", {"mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_state": 4, "mamba_chunk_size": 4}),
}  # fmt: skip


def config_of(family: Family) -> Any:
    """Return the configuration of a family."""
    return getattr(transformers, family.config)(
        **{name: value for name, value in {**SMALL, **family.options}.items() if name not in family.without}
    )


def made(family: Family, device: str, dtype: torch.dtype = torch.float32, **options: Any) -> Any:
    """Return a model with random weights, the same on every device."""
    torch.manual_seed(0)
    config = config_of(family)
    for name, value in options.items():
        setattr(config, name, value)
    return getattr(transformers, family.model)(config).to(dtype).to(device).eval()


def ids(*shape: int, low: int = 3) -> torch.Tensor:
    """Return the same random tokens at each call."""
    return torch.randint(low, 64, shape, generator=torch.Generator().manual_seed(1))


def greedy(model: Any, device: str, **options: Any) -> list[list[int]]:
    """Return the tokens that a model generates for a batch with padding on the left."""
    tokens = ids(2, 7)
    mask = torch.ones_like(tokens)
    tokens[0, :3], mask[0, :3] = 0, 0
    with torch.no_grad():
        made = model.generate(
            tokens.to(device),
            attention_mask=mask.to(device),
            **{"max_new_tokens": 6, "do_sample": False, "disable_compile": True} | options,
        )
    return made.tolist()


def learned(model: Any, device: str) -> dict[str, Any]:
    """Return the loss of a model and the gradients of its parameters."""
    tokens = ids(2, 9).to(device)
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    return {"loss": loss.item(), **named((name, p.grad) for name, p in model.named_parameters())}


def declare_causal(name: str, family: Family) -> None:
    """Declare what each family of language models does."""

    def generate(device: str, dtype: torch.dtype = torch.float32, **options: Any) -> Any:
        return greedy(made(family, device, dtype, **options), device)

    PROGRAMS.add(f"{name}/greedy", generate)
    PROGRAMS.add(f"{name}/backward", lambda device: learned(made(family, device), device))
    PROGRAMS.add(f"{name}/bfloat16", lambda device: learned(made(family, device, torch.bfloat16), device))
    PROGRAMS.add(f"{name}/float16", lambda device: generate(device, torch.float16))
    if family.attention:
        PROGRAMS.add(f"{name}/eager-attention", lambda device: generate(device, _attn_implementation="eager"))


for one, declared in CAUSAL.items():
    declare_causal(one, declared)
