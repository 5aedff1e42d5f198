"""Families of transformers that are not causal language models: encoders, sequence to sequence, vision, audio, several inputs."""

from __future__ import annotations

from typing import Any

import torch
import transformers

from trials._engines.programs import Programs, named, tensors_of

PROGRAMS = Programs()
TEXT = {
    "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": 64, "pad_token_id": 0,
}  # fmt: skip
SEQ2SEQ = {
    "vocab_size": 64, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "forced_eos_token_id": None,
}  # fmt: skip
VISION = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 32,
    "patch_size": 8, "num_labels": 3,
}  # fmt: skip
AUDIO = {
    "vocab_size": 16, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "conv_dim": (16, 16), "conv_kernel": (8, 4), "conv_stride": (4, 2), "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 2, "mask_time_prob": 0.0, "ctc_loss_reduction": "mean",
}  # fmt: skip


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(1)


def text(labels: tuple[int, ...] = (2, 9)) -> dict[str, torch.Tensor]:
    mask = torch.ones(2, 9, dtype=torch.int64)
    mask[1, 6:] = 0
    return {
        "input_ids": torch.randint(3, 64, (2, 9), generator=generator()),
        "attention_mask": mask,
        "labels": torch.randint(0, 2 if len(labels) == 1 else 64, labels, generator=generator()),
    }


def image(size: int = 32, labels: int = 3) -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.randn(2, 3, size, size, generator=generator()), "labels": torch.arange(2) % labels}


def audio() -> dict[str, torch.Tensor]:
    return {
        "input_values": torch.randn(2, 640, generator=generator()),
        "labels": torch.randint(1, 16, (2, 5), generator=generator()),
    }


#: Class, configuration's class, its options, and the inputs with labels.
MODELS: dict[str, tuple[str, str, dict[str, Any], Any]] = {
    "bert": ("BertForMaskedLM", "BertConfig", TEXT, text),
    "roberta": ("RobertaForSequenceClassification", "RobertaConfig", TEXT, lambda: text((2,))),
    "distilbert": ("DistilBertForMaskedLM", "DistilBertConfig", {"vocab_size": 64, "dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 64}, text),
    "electra": ("ElectraForMaskedLM", "ElectraConfig", {**TEXT, "embedding_size": 16}, text),
    "albert": ("AlbertForMaskedLM", "AlbertConfig", {**TEXT, "embedding_size": 16}, text),
    "deberta_v2": ("DebertaV2ForMaskedLM", "DebertaV2Config", {**TEXT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8}, text),
    "modernbert": ("ModernBertForMaskedLM", "ModernBertConfig", {**TEXT, "local_attention": 4, "cls_token_id": 1, "sep_token_id": 2, "bos_token_id": 1, "eos_token_id": 2}, text),
    "mpnet": ("MPNetForMaskedLM", "MPNetConfig", TEXT, text),
    "longformer": ("LongformerForMaskedLM", "LongformerConfig", {**TEXT, "attention_window": [4, 4]}, text),
    "big_bird": ("BigBirdForMaskedLM", "BigBirdConfig", {**TEXT, "attention_type": "original_full"}, text),
    "xlnet": ("XLNetLMHeadModel", "XLNetConfig", {"vocab_size": 64, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48}, text),
    "fnet": ("FNetForMaskedLM", "FNetConfig", TEXT, lambda: {k: v for k, v in text().items() if k != "attention_mask"}),
    "funnel": ("FunnelForMaskedLM", "FunnelConfig", {"vocab_size": 64, "block_sizes": [1, 1], "d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 48}, text),
    "t5": ("T5ForConditionalGeneration", "T5Config", {"vocab_size": 64, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}, text),
    "bart": ("BartForConditionalGeneration", "BartConfig", SEQ2SEQ, text),
    "marian": ("MarianMTModel", "MarianConfig", SEQ2SEQ, text),
    "pegasus": ("PegasusForConditionalGeneration", "PegasusConfig", SEQ2SEQ, text),
    "m2m_100": ("M2M100ForConditionalGeneration", "M2M100Config", SEQ2SEQ, text),
    "switch_transformers": ("SwitchTransformersForConditionalGeneration", "SwitchTransformersConfig", {"vocab_size": 64, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 4, "num_experts": 4, "decoder_start_token_id": 0, "router_jitter_noise": 0.0}, text),
    "vit": ("ViTForImageClassification", "ViTConfig", VISION, image),
    "deit": ("DeiTForImageClassification", "DeiTConfig", VISION, image),
    "beit": ("BeitForImageClassification", "BeitConfig", {**VISION, "use_relative_position_bias": True}, image),
    "swin": ("SwinForImageClassification", "SwinConfig", {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4, "num_labels": 3}, image),
    "swinv2": ("Swinv2ForImageClassification", "Swinv2Config", {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4, "num_labels": 3}, image),
    "convnext": ("ConvNextForImageClassification", "ConvNextConfig", {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2, "num_labels": 3}, image),
    "convnextv2": ("ConvNextV2ForImageClassification", "ConvNextV2Config", {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2, "num_labels": 3}, image),
    "resnet": ("ResNetForImageClassification", "ResNetConfig", {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic", "num_labels": 3}, image),
    "dinov2": ("Dinov2ForImageClassification", "Dinov2Config", VISION, image),
    "dinov3": ("DINOv3ViTModel", "DINOv3ViTConfig", VISION, lambda: {"pixel_values": image()["pixel_values"]}),
    "segformer": ("SegformerForSemanticSegmentation", "SegformerConfig", {"num_encoder_blocks": 2, "depths": [1, 1], "sr_ratios": [4, 2], "hidden_sizes": [8, 16], "patch_sizes": [7, 3], "strides": [4, 2], "num_attention_heads": [1, 2], "mlp_ratios": [2, 2], "decoder_hidden_size": 16, "num_labels": 3}, lambda: {"pixel_values": image()["pixel_values"], "labels": torch.randint(0, 3, (2, 32, 32), generator=generator())}),
    "mobilenet_v2": ("MobileNetV2ForImageClassification", "MobileNetV2Config", {"image_size": 32, "depth_multiplier": 0.25, "num_labels": 3}, image),
    "mobilevit": ("MobileViTForImageClassification", "MobileViTConfig", {"image_size": 32, "hidden_sizes": [16, 24, 32], "neck_hidden_sizes": [8, 8, 16, 16, 16, 16, 32], "num_attention_heads": 4, "num_labels": 3}, image),
    "pvt_v2": ("PvtV2ForImageClassification", "PvtV2Config", {"image_size": 32, "num_encoder_blocks": 2, "depths": [1, 1], "sr_ratios": [4, 2], "hidden_sizes": [8, 16], "patch_sizes": [7, 3], "strides": [4, 2], "num_attention_heads": [1, 2], "mlp_ratios": [2, 2], "num_labels": 3}, image),
    "dpt": ("DPTForDepthEstimation", "DPTConfig", {**VISION, "num_hidden_layers": 4, "backbone_out_indices": [0, 1, 2, 3], "neck_hidden_sizes": [8, 8, 16, 16], "fusion_hidden_size": 16, "reassemble_factors": [4, 2, 1, 0.5]}, lambda: {"pixel_values": image()["pixel_values"]}),
    "sam": ("SamModel", "SamConfig", {"vision_config": {"hidden_size": 32, "output_channels": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 32, "patch_size": 8, "mlp_dim": 48, "window_size": 2, "global_attn_indexes": [1], "num_pos_feats": 8}, "prompt_encoder_config": {"hidden_size": 16, "image_size": 32, "patch_size": 8, "mask_input_channels": 4}, "mask_decoder_config": {"hidden_size": 16, "mlp_dim": 32, "num_attention_heads": 2, "iou_head_hidden_dim": 16, "num_hidden_layers": 2}}, lambda: {"pixel_values": image()["pixel_values"], "input_points": torch.tensor([[[[4.0, 5.0]]], [[[9.0, 3.0]]]])}),
    "clip": ("CLIPModel", "CLIPConfig", {"text_config": {**TEXT, "projection_dim": 16, "bos_token_id": 1, "eos_token_id": 2}, "vision_config": {**VISION, "projection_dim": 16}, "projection_dim": 16}, lambda: {**text(), **image(), "return_loss": True, "labels": None}),
    "siglip": ("SiglipModel", "SiglipConfig", {"text_config": TEXT, "vision_config": VISION}, lambda: {**text(), **image(), "return_loss": True, "labels": None}),
    "blip": ("BlipForConditionalGeneration", "BlipConfig", {"text_config": {**TEXT, "encoder_hidden_size": 32, "bos_token_id": 1, "sep_token_id": 2}, "vision_config": VISION, "projection_dim": 16}, lambda: {**text(), "pixel_values": image()["pixel_values"]}),
    "vilt": ("ViltModel", "ViltConfig", {**TEXT, **VISION}, lambda: {**text(), "pixel_values": image()["pixel_values"], "labels": None}),
    "wav2vec2": ("Wav2Vec2ForCTC", "Wav2Vec2Config", AUDIO, audio),
    "hubert": ("HubertForCTC", "HubertConfig", AUDIO, audio),
    "wavlm": ("WavLMForCTC", "WavLMConfig", AUDIO, audio),
    "whisper": ("WhisperForConditionalGeneration", "WhisperConfig", {**SEQ2SEQ, "num_mel_bins": 8, "max_source_positions": 20, "max_target_positions": 20, "suppress_tokens": [], "begin_suppress_tokens": [], "decoder_start_token_id": 3}, lambda: {"input_features": torch.randn(2, 8, 40, generator=generator()), "labels": text()["labels"]}),
    "ast": ("ASTForAudioClassification", "ASTConfig", {**VISION, "max_length": 32, "num_mel_bins": 16, "frequency_stride": 8, "time_stride": 8}, lambda: {"input_values": torch.randn(2, 32, 16, generator=generator()), "labels": torch.tensor([0, 2])}),
    "encodec": ("EncodecModel", "EncodecConfig", {"num_filters": 4, "hidden_size": 16, "codebook_size": 16, "codebook_dim": 16, "num_lstm_layers": 1, "upsampling_ratios": [4, 2], "sampling_rate": 800, "target_bandwidths": [2.0]}, lambda: {"input_values": torch.randn(2, 1, 320, generator=generator())}),
    "vits": ("VitsModel", "VitsConfig", {"vocab_size": 64, "hidden_size": 16, "ffn_dim": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "flow_size": 16, "upsample_initial_channel": 16, "upsample_rates": [2, 2], "upsample_kernel_sizes": [4, 4], "resblock_kernel_sizes": [3], "resblock_dilation_sizes": [[1]], "posterior_encoder_num_wavenet_layers": 1, "prior_encoder_num_wavenet_layers": 1, "depth_separable_num_layers": 1, "use_stochastic_duration_prediction": False, "noise_scale": 0.0, "duration_predictor_filter_channels": 16}, lambda: {"input_ids": text()["input_ids"]}),
    "time_series": ("TimeSeriesTransformerModel", "TimeSeriesTransformerConfig", {"prediction_length": 4, "context_length": 8, "lags_sequence": [1, 2], "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "num_time_features": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2}, lambda: {"past_values": torch.randn(2, 10, generator=generator()), "past_time_features": torch.randn(2, 10, 1, generator=generator()), "past_observed_mask": torch.ones(2, 10), "future_values": torch.randn(2, 4, generator=generator()), "future_time_features": torch.randn(2, 4, 1, generator=generator())}),
    "patchtst": ("PatchTSTForPrediction", "PatchTSTConfig", {"num_input_channels": 2, "context_length": 16, "patch_length": 4, "patch_stride": 4, "d_model": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "ffn_dim": 16, "prediction_length": 4}, lambda: {"past_values": torch.randn(2, 16, 2, generator=generator()), "future_values": torch.randn(2, 4, 2, generator=generator())}),
    "decision_transformer": ("DecisionTransformerModel", "DecisionTransformerConfig", {"state_dim": 3, "act_dim": 2, "hidden_size": 32, "n_layer": 1, "n_head": 2, "max_ep_len": 16}, lambda: {"states": torch.randn(1, 4, 3, generator=generator()), "actions": torch.randn(1, 4, 2, generator=generator()), "rewards": torch.randn(1, 4, 1, generator=generator()), "returns_to_go": torch.randn(1, 4, 1, generator=generator()), "timesteps": torch.arange(4)[None], "attention_mask": torch.ones(1, 4)}),
}  # fmt: skip


def made(name: str, device: str, dtype: torch.dtype) -> tuple[Any, dict[str, Any]]:
    """Return a model in evaluation mode, and its inputs."""
    model, config, options, inputs = MODELS[name]
    torch.manual_seed(0)
    built = getattr(transformers, model)(getattr(transformers, config)(**options)).to(dtype).to(device).eval()
    given = {}
    for key, value in inputs().items():
        if isinstance(value, torch.Tensor):
            given[key] = value.to(device, dtype if value.is_floating_point() else None)
        elif value is not None:
            given[key] = value
    return built, given


def learned(name: str, device: str, dtype: torch.dtype = torch.float32) -> dict[str, Any]:
    """Return the results of a model, and the gradients of its loss, or of the sum of its floating results."""
    model, inputs = made(name, device, dtype)
    results = model(**inputs)
    loss = results.get("loss")
    if loss is None:
        floats = [
            one
            for one in results.values()
            if isinstance(one, torch.Tensor) and one.is_floating_point() and one.requires_grad
        ]
        loss = sum(one.float().square().mean() for one in floats)
    loss.backward()
    return {"results": tensors_of(dict(results)), **named((key, p.grad) for key, p in model.named_parameters())}


def inferred(name: str, device: str, dtype: torch.dtype) -> list[torch.Tensor]:
    """Return the results of a model without gradients."""
    model, inputs = made(name, device, dtype)
    with torch.no_grad():
        return tensors_of(dict(model(**inputs)))


def declare(name: str) -> None:
    """Declare what each family does."""
    PROGRAMS.add(f"{name}/backward", lambda device: learned(name, device))
    PROGRAMS.add(f"{name}/bfloat16", lambda device: learned(name, device, torch.bfloat16))
    PROGRAMS.add(f"{name}/float16", lambda device: inferred(name, device, torch.float16))
    if "decoder_start_token_id" in MODELS[name][2]:
        PROGRAMS.add(f"{name}/beams", lambda device: beams(name, device))


def beams(name: str, device: str) -> list[list[int]]:
    """Return the tokens that beam search finds."""
    model, inputs = made(name, device, torch.float32)
    inputs.pop("labels")
    with torch.no_grad():
        return model.generate(**inputs, num_beams=3, max_new_tokens=5, do_sample=False).tolist()


for one in MODELS:
    declare(one)
