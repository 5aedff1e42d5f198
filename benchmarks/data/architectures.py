"""Minimal models of transformers, one of each architecture: class, configuration options and inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: Options that nearly every configuration shares.
COMMON: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
_DECODER = COMMON | {"num_key_value_heads": 2}
_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2}
_LATENT = {
    "num_key_value_heads": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1,
    "moe_intermediate_size": 16, "q_lora_rank": 16, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8,
    "v_head_dim": 8, "first_k_dense_replace": 1,
}  # fmt: skip
_ENCODER_DECODER = {
    "vocab_size": 64, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64,
}  # fmt: skip
_VISION = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "image_size": 32,
    "patch_size": 8,
}  # fmt: skip
_STAGES = {"embedding_size": 8, "layer_type": "basic"}

#: Shapes of inputs; an input with the shape ``TOKENS`` has integers below 64.
TOKENS = (2, 7)
_IMAGE, _LARGE_IMAGE = (2, 3, 32, 32), (2, 3, 64, 64)
_TEXT: dict[str, tuple[int, ...]] = {"input_ids": TOKENS}
_PAIR = _TEXT | {"decoder_input_ids": TOKENS}
_PICTURE: dict[str, tuple[int, ...]] = {"pixel_values": _IMAGE}


@dataclass(frozen=True, slots=True)
class ModelConfiguration:
    """Model: class ``model`` of transformers, built from ``configuration`` with ``options``, and its input shapes."""

    model: str
    configuration: str
    options: Mapping[str, Any]
    inputs: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: _TEXT)
    #: Name of the output that is compared.
    output: str = "logits"


def _decoder(name: str, configuration: str = "", **options: Any) -> ModelConfiguration:
    return ModelConfiguration(f"{name}ForCausalLM", configuration or f"{name}Config", _DECODER | options)


def _encoder(name: str, **options: Any) -> ModelConfiguration:
    return ModelConfiguration(f"{name}ForMaskedLM", f"{name}Config", COMMON | options)


def _picture(name: str, kind: str, output: str = "logits", /, **options: Any) -> ModelConfiguration:
    return ModelConfiguration(f"{name}{kind}", f"{name}Config", options, _PICTURE, output)


_CLASSES = "ForImageClassification"

ARCHITECTURES: dict[str, ModelConfiguration] = {
    "GPT-2": ModelConfiguration("GPT2LMHeadModel", "GPT2Config", {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}),
    "GPT-NeoX": _decoder("GPTNeoX"),
    "GPT-J": ModelConfiguration("GPTJForCausalLM", "GPTJConfig", {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "rotary_dim": 4}),
    "OPT": _decoder("OPT", ffn_dim=64, word_embed_proj_dim=32),
    "BLOOM": ModelConfiguration("BloomForCausalLM", "BloomConfig", {"vocab_size": 64, "hidden_size": 32, "n_layer": 2, "n_head": 4}),
    "Falcon": ModelConfiguration("FalconForCausalLM", "FalconConfig", COMMON),
    "Mistral": _decoder("Mistral"),
    "Gemma": _decoder("Gemma", head_dim=8),
    "Gemma 2": _decoder("Gemma2", head_dim=8, sliding_window=4),
    "Gemma 3": _decoder("Gemma3", "Gemma3TextConfig", head_dim=8, sliding_window=4),
    "Phi": _decoder("Phi"),
    "Phi-3": _decoder("Phi3"),
    "StableLM": _decoder("StableLm"),
    "Cohere": _decoder("Cohere"),
    "OLMo 2": _decoder("Olmo2"),
    "StarCoder 2": _decoder("Starcoder2"),
    "Granite": _decoder("Granite"),
    "GLM": _decoder("Glm", head_dim=8),
    "GLM-4": _decoder("Glm4", head_dim=8),
    "Qwen 3": _decoder("Qwen3", head_dim=8),
    "Qwen 3 MoE": _decoder("Qwen3Moe", head_dim=8, moe_intermediate_size=16, **_EXPERTS),
    "Qwen 2 MoE": _decoder("Qwen2Moe", moe_intermediate_size=16, shared_expert_intermediate_size=16, **_EXPERTS),
    "OLMoE": _decoder("Olmoe", **_EXPERTS),
    "Phi MoE": _decoder("Phimoe", num_local_experts=4),
    "DeepSeek V2": _decoder("DeepseekV2", **_LATENT),
    "DeepSeek V3": _decoder("DeepseekV3", **_LATENT),
    "Llama 4": _decoder("Llama4", "Llama4TextConfig", head_dim=8, num_local_experts=4, intermediate_size_mlp=64),
    "GPT-OSS": _decoder("GptOss", head_dim=8, num_local_experts=4, num_experts_per_tok=2, sliding_window=4),
    "Mamba": ModelConfiguration("MambaForCausalLM", "MambaConfig", {"vocab_size": 64, "hidden_size": 32, "state_size": 8, "num_hidden_layers": 2}),
    "Mamba 2": ModelConfiguration("Mamba2ForCausalLM", "Mamba2Config", {
        "vocab_size": 64, "hidden_size": 32, "state_size": 8, "num_hidden_layers": 2, "num_heads": 8, "head_dim": 8, "n_groups": 1, "chunk_size": 4,
    }),
    "Qwen 3 Next": _decoder(
        "Qwen3Next", head_dim=8, moe_intermediate_size=16, shared_expert_intermediate_size=16, linear_num_key_heads=2, linear_num_value_heads=4,
        linear_key_head_dim=8, linear_value_head_dim=8, layer_types=["linear_attention", "full_attention"], **_EXPERTS,
    ),
    "RWKV": ModelConfiguration("RwkvForCausalLM", "RwkvConfig", {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2}),
    "BERT": _encoder("Bert"),
    "RoBERTa": _encoder("Roberta"),
    "DeBERTa V2": _encoder("DebertaV2", relative_attention=True, pos_att_type=["p2c", "c2p"]),
    "ALBERT": _encoder("Albert", embedding_size=16),
    "ELECTRA": _encoder("Electra", embedding_size=16),
    "ModernBERT": _encoder("ModernBert", cls_token_id=1, bos_token_id=1, sep_token_id=2, eos_token_id=2),
    "XLNet": ModelConfiguration("XLNetLMHeadModel", "XLNetConfig", {"vocab_size": 64, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64}),
    "T5": ModelConfiguration("T5ForConditionalGeneration", "T5Config", {"vocab_size": 64, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}, _PAIR),
    "BART": ModelConfiguration("BartForConditionalGeneration", "BartConfig", _ENCODER_DECODER | {"max_position_embeddings": 64}, _PAIR),
    "Whisper": ModelConfiguration(
        "WhisperForConditionalGeneration", "WhisperConfig",
        _ENCODER_DECODER | {
            "num_mel_bins": 8, "max_source_positions": 16, "max_target_positions": 16, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
            "decoder_start_token_id": 1,
        },
        {"input_features": (2, 8, 32), "decoder_input_ids": TOKENS},
    ),
    "wav2vec 2": ModelConfiguration(
        "Wav2Vec2ForCTC", "Wav2Vec2Config",
        COMMON | {
            "conv_dim": (16, 16), "conv_stride": (2, 2), "conv_kernel": (3, 3), "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 4,
            "num_conv_pos_embedding_groups": 2, "mask_time_prob": 0.0,
        },
        {"input_values": (2, 64)},
    ),
    "EnCodec": ModelConfiguration(
        "EncodecModel", "EncodecConfig",
        {"num_filters": 4, "hidden_size": 16, "codebook_size": 16, "upsampling_ratios": [4, 2], "target_bandwidths": [24.0]},
        {"input_values": (1, 1, 640)}, "audio_values",
    ),
    "ViT": _picture("ViT", _CLASSES, **_VISION),
    "Swin": _picture("Swin", _CLASSES, image_size=32, patch_size=4, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4),
    "ConvNeXt": _picture("ConvNext", _CLASSES, hidden_sizes=[8, 16, 16, 16], depths=[1, 1, 1, 1]),
    "ResNet": _picture("ResNet", _CLASSES, hidden_sizes=[8, 16], depths=[1, 1], **_STAGES),
    "MobileNet V2": _picture("MobileNetV2", _CLASSES, image_size=32, depth_multiplier=0.35),
    "DINOv2": _picture("Dinov2", "Model", "last_hidden_state", **{k: v for k, v in _VISION.items() if k != "intermediate_size"}),
    "ViT MAE": ModelConfiguration("ViTMAEModel", "ViTMAEConfig", _VISION | {"mask_ratio": 0.0}, _PICTURE | {"noise": (2, 16)}, "last_hidden_state"),
    "SegFormer": ModelConfiguration(
        "SegformerForSemanticSegmentation", "SegformerConfig",
        {"hidden_sizes": [8, 16, 16, 16], "num_attention_heads": [1, 2, 2, 2], "depths": [1, 1, 1, 1], "decoder_hidden_size": 16},
        {"pixel_values": _LARGE_IMAGE},
    ),
    "TimeSformer": ModelConfiguration("TimesformerForVideoClassification", "TimesformerConfig", _VISION | {"num_frames": 2}, {"pixel_values": (1, 2, 3, 32, 32)}),
    "CLIP": ModelConfiguration(
        "CLIPModel", "CLIPConfig",
        {"text_config": COMMON | {"eos_token_id": 3}, "vision_config": _VISION, "projection_dim": 16}, _TEXT | _PICTURE, "logits_per_image",
    ),
    "SigLIP": ModelConfiguration("SiglipModel", "SiglipConfig", {"text_config": COMMON, "vision_config": _VISION}, _TEXT | _PICTURE, "logits_per_image"),
    "DETR": ModelConfiguration(
        "DetrForObjectDetection", "DetrConfig",
        {
            "use_timm_backbone": False, "use_pretrained_backbone": False,
            "backbone_config": ("ResNetConfig", {"hidden_sizes": [8, 16, 16, 16], "depths": [1, 1, 1, 1], "out_features": ["stage4"], **_STAGES}),
            "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
            "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "num_queries": 5,
        },
        {"pixel_values": _LARGE_IMAGE},
    ),
    "time series": ModelConfiguration(
        "TimeSeriesTransformerForPrediction", "TimeSeriesTransformerConfig",
        {
            "prediction_length": 4, "context_length": 8, "lags_sequence": [1, 2], "d_model": 16, "encoder_layers": 1, "decoder_layers": 1,
            "encoder_attention_heads": 2, "decoder_attention_heads": 2, "num_time_features": 1,
        },
        {
            "past_values": (2, 10), "past_time_features": (2, 10, 1), "past_observed_mask": (2, 10), "future_values": (2, 4),
            "future_time_features": (2, 4, 1),
        },
        "loss",
    ),
}  # fmt: skip
