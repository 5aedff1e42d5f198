"""Programs of diffusers: tiny models with random weights, and pipelines of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import diffusers
import torch
import torch_npu
import transformers
from diffusers.models import activations

from trials._engines.programs import Programs, named, tensors_of
from trials._engines.transformers_encoders import TEXT

PROGRAMS = Programs()
UNET = {
    "block_out_channels": (8, 16), "layers_per_block": 1, "sample_size": 8, "in_channels": 4, "out_channels": 4, "norm_num_groups": 4,
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"), "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
    "cross_attention_dim": 32, "attention_head_dim": 4,
}  # fmt: skip
VAE = {
    "block_out_channels": (8, 16), "down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2,
    "latent_channels": 4, "norm_num_groups": 4, "sample_size": 16,
}  # fmt: skip


def geglu(
    value: torch.Tensor, dim: int = -1, approximate: int = 1, activate_left: bool = False
) -> tuple[torch.Tensor, None]:
    """Return what ``npu_geglu`` computes, on the CPU."""
    kept, gate = value.chunk(2, dim=dim)[:: -1 if activate_left else 1]
    return kept * torch.nn.functional.gelu(gate, approximate="tanh" if approximate else "none"), None


def use(device: str) -> str:
    """Let diffusers call torch_npu's operator on the device alone: where there is an NPU it does so for CPU tensors, too."""
    activations.torch_npu = SimpleNamespace(npu_geglu=geglu) if device == "cpu" else torch_npu
    return device


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


def words(*shape: int) -> torch.Tensor:
    return torch.randint(3, 64, shape, generator=torch.Generator().manual_seed(2))


#: Class of a model, its configuration, its inputs.
MODELS: dict[str, tuple[str, dict[str, Any], Any]] = {
    "unet": ("UNet2DConditionModel", UNET, lambda: {"sample": drawn(2, 4, 8, 8), "timestep": torch.tensor([3, 7]), "encoder_hidden_states": drawn(2, 5, 32)}),
    "unet-plain": ("UNet2DModel", {"block_out_channels": (8, 16), "layers_per_block": 1, "sample_size": 8, "norm_num_groups": 4, "down_block_types": ("DownBlock2D", "AttnDownBlock2D"), "up_block_types": ("AttnUpBlock2D", "UpBlock2D"), "attention_head_dim": 4}, lambda: {"sample": drawn(2, 3, 8, 8), "timestep": torch.tensor([3, 7])}),
    "unet-3d": ("UNet3DConditionModel", {**UNET, "down_block_types": ("CrossAttnDownBlock3D", "DownBlock3D"), "up_block_types": ("UpBlock3D", "CrossAttnUpBlock3D")}, lambda: {"sample": drawn(1, 4, 3, 8, 8), "timestep": torch.tensor([3]), "encoder_hidden_states": drawn(1, 5, 32)}),
    "controlnet": ("ControlNetModel", {**{k: v for k, v in UNET.items() if k not in ("sample_size", "out_channels", "up_block_types")}, "conditioning_embedding_out_channels": (8, 16)}, lambda: {"sample": drawn(2, 4, 8, 8), "timestep": torch.tensor([3, 7]), "encoder_hidden_states": drawn(2, 5, 32), "controlnet_cond": drawn(2, 3, 16, 16)}),
    "vae": ("AutoencoderKL", VAE, lambda: {"sample": drawn(1, 3, 16, 16)}),
    "vae-video": ("AutoencoderKLCogVideoX", {"in_channels": 3, "out_channels": 3, "down_block_types": ("CogVideoXDownBlock3D",) * 4, "up_block_types": ("CogVideoXUpBlock3D",) * 4, "block_out_channels": (8, 8, 8, 8), "latent_channels": 4, "layers_per_block": 1, "norm_num_groups": 2, "temporal_compression_ratio": 4}, lambda: {"sample": drawn(1, 3, 9, 16, 16)}),
    "vq": ("VQModel", {"block_out_channels": (8, 16), "down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2, "latent_channels": 3, "norm_num_groups": 4, "num_vq_embeddings": 16}, lambda: {"sample": drawn(1, 3, 16, 16)}),
    "dit": ("DiTTransformer2DModel", {"num_attention_heads": 2, "attention_head_dim": 8, "in_channels": 4, "out_channels": 8, "num_layers": 2, "sample_size": 8, "patch_size": 2, "num_embeds_ada_norm": 8, "norm_num_groups": 4}, lambda: {"hidden_states": drawn(2, 4, 8, 8), "timestep": torch.tensor([3, 7]), "class_labels": torch.tensor([1, 2])}),
    "pixart": ("PixArtTransformer2DModel", {"num_attention_heads": 2, "attention_head_dim": 8, "in_channels": 4, "out_channels": 8, "num_layers": 2, "sample_size": 8, "cross_attention_dim": 16, "caption_channels": 32, "use_additional_conditions": False}, lambda: {"hidden_states": drawn(2, 4, 8, 8), "timestep": torch.tensor([3, 7]), "encoder_hidden_states": drawn(2, 5, 32), "added_cond_kwargs": {"resolution": None, "aspect_ratio": None}}),
    "sd3": ("SD3Transformer2DModel", {"sample_size": 8, "patch_size": 2, "in_channels": 4, "out_channels": 4, "num_layers": 2, "attention_head_dim": 8, "num_attention_heads": 2, "joint_attention_dim": 32, "caption_projection_dim": 16, "pooled_projection_dim": 16, "pos_embed_max_size": 8}, lambda: {"hidden_states": drawn(2, 4, 8, 8), "timestep": torch.tensor([3, 7]), "encoder_hidden_states": drawn(2, 5, 32), "pooled_projections": drawn(2, 16)}),
    "flux": ("FluxTransformer2DModel", {"in_channels": 4, "num_layers": 1, "num_single_layers": 1, "attention_head_dim": 16, "num_attention_heads": 2, "joint_attention_dim": 32, "pooled_projection_dim": 16, "axes_dims_rope": (4, 4, 8)}, lambda: {"hidden_states": drawn(1, 16, 4), "timestep": torch.tensor([0.3]), "encoder_hidden_states": drawn(1, 5, 32), "pooled_projections": drawn(1, 16), "img_ids": torch.cartesian_prod(torch.arange(1.0), torch.arange(4.0), torch.arange(4.0)), "txt_ids": torch.zeros(5, 3)}),
    "wan": ("WanTransformer3DModel", {"patch_size": (1, 2, 2), "num_attention_heads": 2, "attention_head_dim": 12, "in_channels": 4, "out_channels": 4, "text_dim": 16, "freq_dim": 32, "ffn_dim": 32, "num_layers": 2, "rope_max_seq_len": 32}, lambda: {"hidden_states": drawn(1, 4, 2, 8, 8), "timestep": torch.tensor([3]), "encoder_hidden_states": drawn(1, 5, 16)}),
}  # fmt: skip


def made(name: str, device: str, dtype: torch.dtype) -> tuple[Any, dict[str, Any]]:
    """Return a model in evaluation mode, and its inputs."""
    kind, options, inputs = MODELS[name]
    torch.manual_seed(0)
    model = getattr(diffusers, kind)(**options).to(dtype).to(use(device)).eval()

    def placed(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(placed(one) for one in value)
        return (
            value.to(device, dtype if value.is_floating_point() else None) if isinstance(value, torch.Tensor) else value
        )

    return model, {key: placed(value) for key, value in inputs().items()}


def learned(name: str, device: str, dtype: torch.dtype = torch.float32) -> Any:
    """Return the result of a model, and the gradients of its mean square."""
    model, inputs = made(name, device, dtype)
    results = [one for one in model(**inputs, return_dict=False) if one is not None]
    flat = [one for group in results for one in (group if isinstance(group, (list, tuple)) else [group])]
    sum(one.float().square().mean() for one in flat).backward()  # type: ignore[union-attr]
    return [tensors_of(flat), named((key, p.grad) for key, p in model.named_parameters())]


for one in MODELS:
    PROGRAMS.add(f"{one}/backward", lambda device, one=one: learned(one, device))
    if one != "vq":  # the nearest of its vectors is another one after rounding
        PROGRAMS.add(f"{one}/bfloat16", lambda device, one=one: learned(one, device, torch.bfloat16))
    PROGRAMS.add(f"{one}/float16", lambda device, one=one: learned(one, device, torch.float16)[0])

SCHEDULERS = (
    "DDIMScheduler", "DDPMScheduler", "PNDMScheduler", "EulerDiscreteScheduler", "EulerAncestralDiscreteScheduler",
    "DPMSolverMultistepScheduler", "DPMSolverSinglestepScheduler", "UniPCMultistepScheduler", "HeunDiscreteScheduler",
    "KDPM2DiscreteScheduler", "LCMScheduler", "TCDScheduler", "DEISMultistepScheduler", "FlowMatchEulerDiscreteScheduler",
)  # fmt: skip


def scheduled(name: str, device: str) -> torch.Tensor:
    """Return a sample after the steps of a scheduler, whose noise is drawn on the CPU as diffusers recommends."""
    scheduler = getattr(diffusers, name)()
    scheduler.set_timesteps(4, device=device)
    sample, generator = drawn(1, 4, 8, 8).to(device), torch.Generator().manual_seed(3)
    options = {"generator": generator} if "generator" in scheduler.step.__code__.co_varnames else {}
    for step in scheduler.timesteps:
        given = scheduler.scale_model_input(sample, step) if hasattr(scheduler, "scale_model_input") else sample
        sample = scheduler.step(given.tanh() * 0.3, step, sample, **options).prev_sample
    return sample


for one in SCHEDULERS:
    PROGRAMS.add(f"scheduler/{one.removesuffix('Scheduler')}", lambda device, one=one: scheduled(one, device))


def stable_diffusion(device: str, dtype: torch.dtype, **options: Any) -> Any:
    """Return the image of a text-to-image pipeline with given embeddings of the text."""
    torch.manual_seed(0)
    config = transformers.CLIPTextConfig(**{**TEXT, "projection_dim": 32, "bos_token_id": 1, "eos_token_id": 2})
    pipeline = diffusers.StableDiffusionPipeline(
        unet=diffusers.UNet2DConditionModel(**UNET), vae=diffusers.AutoencoderKL(**VAE), scheduler=diffusers.DDIMScheduler(),
        text_encoder=transformers.CLIPTextModel(config), tokenizer=None, safety_checker=None, feature_extractor=None,
        requires_safety_checker=False,
    ).to(use(device), dtype)  # fmt: skip
    pipeline.set_progress_bar_config(disable=True)
    embeddings = pipeline.text_encoder(words(1, 6).to(device))[0]
    for name, value in options.items():
        getattr(pipeline, name)(*value)
    return pipeline(
        prompt_embeds=embeddings, negative_prompt_embeds=torch.zeros_like(embeddings), num_inference_steps=3, height=16, width=16,
        generator=torch.Generator().manual_seed(4), output_type="pt",
    ).images  # fmt: skip


PROGRAMS.add("pipeline/float32", lambda device: stable_diffusion(device, torch.float32))
PROGRAMS.add("pipeline/float16", lambda device: stable_diffusion(device, torch.float16))
PROGRAMS.add("pipeline/slicing", lambda device: stable_diffusion(device, torch.float32, enable_attention_slicing=()))
PROGRAMS.add(
    "pipeline/offload",
    lambda device: stable_diffusion(
        device, torch.float32, **({"enable_model_cpu_offload": (0, device)} if device == "npu" else {})
    ),
)


@PROGRAMS("pipeline/npu-attention")
def npu_attention(device: str) -> Any:
    """Return the result of a model by the processor that diffusers has for npu_fusion_attention."""
    model, inputs = made("unet", device, torch.float16)
    if device == "npu":
        from diffusers.models.attention_processor import AttnProcessorNPU

        model.set_attn_processor(AttnProcessorNPU())
    with torch.no_grad():
        return model(**inputs, return_dict=False)[0]
