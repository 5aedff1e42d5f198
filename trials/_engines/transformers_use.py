"""Ways to use transformers: generation, caches, compilation, loading, training, pipelines."""

from __future__ import annotations

import tempfile
from typing import Any

import torch
import transformers
from transformers import StaticCache

from trials._engines.programs import Programs, named
from trials._engines.transformers_programs import CAUSAL, config_of, greedy, ids, made

PROGRAMS = Programs()
LLAMA = CAUSAL["llama"]

#: Options of ``generate`` whose tokens are the same on every device.
GENERATIONS: dict[str, dict[str, Any]] = {
    "beams": {"num_beams": 3, "num_return_sequences": 2},
    "penalties": {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2, "min_new_tokens": 3, "encoder_repetition_penalty": 1.1},
    "bad_words": {"bad_words_ids": [[5], [7, 8]], "suppress_tokens": [9], "forced_eos_token_id": 2},
    "quantized_scores": {"output_scores": False, "return_dict_in_generate": False, "renormalize_logits": True},
    "prompt_lookup": {"prompt_lookup_num_tokens": 2, "num_beams": 1},
    "static": {"cache_implementation": "static"},
    "no_cache": {"use_cache": False},
    "stop": {"max_time": 60.0, "exponential_decay_length_penalty": (2, 1.1)},
    "top_k_1": {"do_sample": True, "top_k": 1, "top_p": 0.9, "temperature": 0.7},
    "chunked_prefill": {"prefill_chunk_size": 3},
}  # fmt: skip


def alone(model: Any, device: str, **options: Any) -> list[list[int]]:
    """Return the tokens of a batch of one, without padding."""
    tokens = ids(1, 7).to(device)
    with torch.no_grad():
        options = {"max_new_tokens": 6, "do_sample": False, "disable_compile": True, "pad_token_id": 0} | options
        return model.generate(tokens, **options).tolist()


for one, chosen in GENERATIONS.items():
    PROGRAMS.add(f"generate/{one}", lambda device, chosen=chosen: alone(made(LLAMA, device), device, **chosen))


@PROGRAMS("generate/samples", compared=False)
def samples(device: str) -> None:
    """Check that a seed gives the same tokens twice, and another seed others, as often as they are likely."""
    model = made(LLAMA, device)

    def drawn(seed: int, **options: Any) -> Any:
        torch.manual_seed(seed)
        return alone(model, device, do_sample=True, max_new_tokens=20, eos_token_id=None, **options)

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    assert drawn(1, top_k=1) == alone(model, device, max_new_tokens=20, eos_token_id=None)
    with torch.no_grad():
        logits = torch.randn(64, generator=torch.Generator().manual_seed(0)).to(device)
        generator = torch.Generator(device).manual_seed(3)
        counts = torch.multinomial(logits.softmax(-1), 50_000, replacement=True, generator=generator).bincount(
            minlength=64
        )
    torch.testing.assert_close(counts.cpu() / 50_000, logits.softmax(-1).cpu(), rtol=0.2, atol=3e-3)


@PROGRAMS("generate/assistant")
def assistant(device: str) -> Any:
    return alone(made(LLAMA, device), device, assistant_model=made(CAUSAL["llama"], device))


@PROGRAMS("generate/streamer")
def streamer(device: str) -> list[int]:
    received: list[int] = []

    class Streamer(transformers.generation.streamers.BaseStreamer):
        def put(self, value: torch.Tensor) -> None:
            received.extend(value.flatten().tolist())

        def end(self) -> None:
            received.append(-1)

    alone(made(LLAMA, device), device, streamer=Streamer())
    return received


@PROGRAMS("generate/scores")
def scores(device: str) -> Any:
    with torch.no_grad():
        out = made(LLAMA, device).generate(
            ids(1, 7).to(device), max_new_tokens=4, do_sample=False, disable_compile=True, output_scores=True,
            output_attentions=False, output_hidden_states=True, return_dict_in_generate=True, pad_token_id=0,
        )  # fmt: skip
    return [out.sequences, *out.scores, *out.hidden_states[-1]]


def static_compiled(device: str, backend: Any) -> list[list[int]]:
    """Return tokens of a model whose forward is compiled, with a static cache that lies on the device."""
    model = made(LLAMA, device)
    if device == "npu":
        import torchair  # noqa: F401 - first: after a graph of npugraph_ex it cannot be imported (W19)
    cache = StaticCache(config_of(LLAMA), max_cache_len=16)
    cache.early_initialization(1, 2, 8, torch.float32, torch.device(device))
    if device == "npu":
        model.forward = torch.compile(model.forward, backend=backend, dynamic=False)
    return alone(model, device, past_key_values=cache)


PROGRAMS.add("compile/npugraph_ex", lambda device: static_compiled(device, "npugraph_ex"))


@PROGRAMS("compile/ge")
def compiled_ge(device: str) -> Any:
    model = made(LLAMA, device)
    if device == "npu":
        import torchair

        model.forward = torch.compile(model.forward, backend=torchair.get_npu_backend(), dynamic=False)
    return alone(model, device, max_new_tokens=3)


@PROGRAMS("compile/default", refusal="LoweringException: AssertionError")
def compiled_default(device: str) -> Any:
    model = made(LLAMA, device)
    if device == "npu":
        model.forward = torch.compile(model.forward)
    return alone(model, device)


@PROGRAMS("compile/generate-static-default")
def compiled_by_generate(device: str) -> Any:
    return alone(made(LLAMA, device), device, cache_implementation="static", disable_compile=device == "cpu")


@PROGRAMS("load/device_map")
def device_map(device: str) -> Any:
    with tempfile.TemporaryDirectory() as directory:
        made(LLAMA, "cpu").save_pretrained(directory)
        found = {}
        for name, options in {
            "device": {"device_map": device},
            "auto": {"device_map": "auto" if device == "npu" else "cpu"},
            "by module": {"device_map": {"model.embed_tokens": "cpu", "": device}},
            "bfloat16": {"device_map": device, "dtype": torch.bfloat16},
        }.items():
            model = transformers.AutoModelForCausalLM.from_pretrained(directory, **options).eval()
            found[name] = [alone(model, device), str(model.lm_head.weight.device.type == device)]
        return found


@PROGRAMS("load/torch_device")
def torch_device(device: str) -> Any:
    torch.manual_seed(0)
    state = made(LLAMA, "cpu").state_dict()
    with torch.device(device):
        model = transformers.LlamaForCausalLM(config_of(LLAMA)).eval()
    model.load_state_dict(state)
    with torch.device("meta"):
        other = transformers.LlamaForCausalLM(config_of(LLAMA))
    other.load_state_dict({name: value.to(device) for name, value in state.items()}, assign=True)
    rotary = other.model.rotary_emb
    other.model.rotary_emb = type(rotary)(config_of(LLAMA)).to(device)
    return [alone(model, device), alone(other.eval(), device)]


@PROGRAMS("attention/flash_attention_2")
def flash(device: str) -> Any:
    """Return tokens by the flash attention that transformers has for NPUs (npu_fusion_attention); on the CPU by SDPA."""
    if device == "cpu":
        return greedy(made(LLAMA, device, torch.float16), device)
    return greedy(made(LLAMA, device, torch.float16, _attn_implementation="flash_attention_2"), device)


@PROGRAMS("attention/flex_attention", refusal="LoweringException: AssertionError")
def flex(device: str) -> Any:
    return greedy(made(LLAMA, device, _attn_implementation="flex_attention" if device == "npu" else "sdpa"), device)


@PROGRAMS("attention/sdpa_paged")
def continuous(device: str) -> Any:
    """Continuous batching over a paged cache; the reference is each request by itself."""
    model = made(LLAMA, device)
    requests = [ids(1, n)[0].tolist() for n in (5, 8)]
    options = {
        "max_new_tokens": 5,
        "do_sample": False,
        "pad_token_id": 0,
        "eos_token_id": 2,
    }
    if device == "cpu":
        with torch.no_grad():
            return [
                model.generate(torch.tensor([one]), disable_compile=True, **options)[0, len(one) :].tolist()
                for one in requests
            ]
    model.set_attn_implementation("paged|sdpa")
    made_of = model.generate_batch(
        inputs=requests, generation_config=transformers.GenerationConfig(**options, num_blocks=16, max_batch_tokens=32)
    )
    return [one.generated_tokens for one in made_of.values()]


class Tokens(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Rows of random tokens."""

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        tokens = torch.randint(3, 64, (8,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": tokens, "labels": tokens}


def trained(device: str, **options: Any) -> Any:
    """Return losses and parameters after three steps of Trainer."""
    model = made(LLAMA, "cpu")
    with tempfile.TemporaryDirectory() as directory:
        arguments = transformers.TrainingArguments(
            output_dir=directory, max_steps=3, per_device_train_batch_size=2, logging_steps=1, report_to=[], use_cpu=device == "cpu",
            save_strategy="no", disable_tqdm=True, seed=0, dataloader_pin_memory=device != "cpu", **options,
        )  # fmt: skip
        trainer = transformers.Trainer(model=model, args=arguments, train_dataset=Tokens(), eval_dataset=Tokens())
        trainer.train()
        losses = [one["loss"] for one in trainer.state.log_history if "loss" in one]
        return {
            "losses": [float(one) for one in losses],
            "eval": trainer.evaluate()["eval_loss"],
            **named(model.named_parameters()),
        }


TRAININGS: dict[str, dict[str, Any]] = {
    "adamw": {},
    "fused": {"optim": "adamw_torch_fused"},
    "adafactor": {"optim": "adafactor"},
    "sgd": {"optim": "sgd"},
    "accumulation": {"gradient_accumulation_steps": 2},
    "checkpointing": {"gradient_checkpointing": True},
    "bf16": {"bf16": True},
    "cosine": {"lr_scheduler_type": "cosine", "warmup_steps": 1, "max_grad_norm": 0.1},
    "workers": {"dataloader_num_workers": 1},
}  # fmt: skip
for one, chosen in TRAININGS.items():
    PROGRAMS.add(f"trainer/{one}", lambda device, chosen=chosen: trained(device, **chosen))


def near_float32(device: str, **options: Any) -> None:
    """Raise AssertionError unless losses are near those of float32 on the CPU."""
    got, want = trained(device, **options)["losses"], trained("cpu")["losses"]
    assert all(abs(a - b) < 0.02 for a, b in zip(got, want, strict=True)), (got, want)


PROGRAMS.add("trainer/fp16", lambda device: near_float32(device, fp16=True, optim="adamw_torch"), compared=False)
PROGRAMS.add(
    "trainer/fp16-fused",
    lambda device: near_float32(device, fp16=True),
    compared=False,
    refusal="unexpected keyword argument 'grad_scaler'",
)
PROGRAMS.add("trainer/npu-fused", lambda device: near_float32(device, optim="adamw_torch_npu_fused"), compared=False)


@PROGRAMS("trainer/resume")
def resumed(device: str) -> Any:
    """Return the losses of a training that is saved after two steps and resumed."""
    with tempfile.TemporaryDirectory() as directory:
        losses: list[Any] = []
        for steps, resume in ((2, None), (4, True)):
            arguments = transformers.TrainingArguments(
                output_dir=directory, max_steps=steps, per_device_train_batch_size=2, logging_steps=1, report_to=[],
                use_cpu=device == "cpu", save_steps=2, disable_tqdm=True, seed=0, lr_scheduler_type="constant",
            )  # fmt: skip
            trainer = transformers.Trainer(model=made(LLAMA, "cpu"), args=arguments, train_dataset=Tokens())
            trainer.train(resume_from_checkpoint=resume)
            losses += [float(one["loss"]) for one in trainer.state.log_history if "loss" in one]
        return losses


def tokenizer(directory: str) -> Any:
    """Return a tokenizer of words."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {"[PAD]": 0, "[BOS]": 1, "[EOS]": 2, "[UNK]": 3, "[MASK]": 4} | {f"w{i}": i for i in range(5, 64)}
    made_of = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    made_of.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made_of, pad_token="[PAD]", bos_token="[BOS]", eos_token="[EOS]", unk_token="[UNK]", mask_token="[MASK]",
        model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip


def rounded(value: Any) -> Any:
    """Return a nest with its floats rounded."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(one) for one in value]
    return round(value, 4) if isinstance(value, float) else value


@PROGRAMS("pipeline/text")
def text_pipelines(device: str) -> Any:
    from trials._engines.transformers_encoders import TEXT

    words = tokenizer("")
    config = transformers.BertConfig(**TEXT)
    torch.manual_seed(0)
    classes, masked = transformers.BertForSequenceClassification(config), transformers.BertForMaskedLM(config)
    tokens = transformers.BertForTokenClassification(config)
    for model in (classes, masked, tokens):
        model.eval()
    texts = ["w5 w6 w7", "w8 w9"]
    return rounded([
        transformers.pipeline("text-generation", model=made(LLAMA, "cpu"), tokenizer=words, device=device)(
            texts, max_new_tokens=4, do_sample=False, batch_size=2),
        transformers.pipeline("text-classification", model=classes, tokenizer=words, device=device)(texts),
        transformers.pipeline("fill-mask", model=masked, tokenizer=words, device=device)("w5 [MASK] w7", top_k=3),
        transformers.pipeline("feature-extraction", model=masked.bert, tokenizer=words, device=device)("w5 w6"),
        [[{**one, "score": float(one["score"])} for one in transformers.pipeline(
            "token-classification", model=tokens, tokenizer=words, device=device)("w5 w6")]],
    ])  # fmt: skip
