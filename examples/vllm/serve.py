"""A tiny Llama, served by vLLM on the host runtime: ``ascend-graph run serve.py MODEL [--graph] [--ranks 2]``.

Four prompts are served at once, in chunks of 64 tokens, then two of them again, which finds their beginnings in the prefix cache.
Each greedy token is compared with the same model in transformers on the CPU. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

TOKENS = 8
#: Longer than a block of the cache (128 tokens) and than a chunk, shorter than both, and of one token.
PROMPTS = [[(7 * i) % 499 + 1 for i in range(200)], list(range(100, 140)), [7] * 5, [42]]


def write_model(directory: Path) -> None:
    """Write a model whose tokens do not depend on how a sum is rounded: its weights are far from each other."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=512,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        initializer_range=0.25,
    )
    LlamaForCausalLM(config).half().save_pretrained(directory)


def reference(directory: Path) -> list[list[int]]:
    """Return the greedy tokens of transformers on the CPU, in float32."""
    import torch
    from transformers import LlamaForCausalLM

    model = LlamaForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()
    results = []
    for prompt in PROMPTS:
        tokens = list(prompt)
        for _ in range(TOKENS):
            tokens.append(int(model(torch.tensor([tokens])).logits[0, -1].argmax()))
        results.append(tokens[len(prompt) :])
    return results


def main() -> None:
    """Serve the prompts and compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", type=Path, help="directory of the model; made where there is none")
    parser.add_argument("--graph", action="store_true", help="captured graphs (ACL graph) in place of eager mode")
    parser.add_argument("--ranks", type=int, default=1, help="tensor parallel ranks")
    arguments = parser.parse_args()
    # vLLM's own switch, with which vllm-ascend leaves its extension's operators: their package has binaries of a device.
    os.environ.setdefault("VLLM_BATCH_INVARIANT", "1")
    if arguments.ranks == 1:
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    if not (arguments.model / "config.json").exists():
        write_model(arguments.model)
    expected = reference(arguments.model)

    from vllm import LLM, SamplingParams

    engine = LLM(
        model=str(arguments.model),
        skip_tokenizer_init=True,
        dtype="float16",
        enforce_eager=not arguments.graph,
        tensor_parallel_size=arguments.ranks,
        max_model_len=512,
        max_num_seqs=4,
        max_num_batched_tokens=64,
        enable_chunked_prefill=True,
        enable_prefix_caching=True,
        gpu_memory_utilization=0.3,
        num_gpu_blocks_override=64,  # of 128 tokens: the cache is the machine's memory, of each rank
    )
    sampling = SamplingParams(max_tokens=TOKENS, temperature=0, ignore_eos=True, detokenize=False)
    served, cached = [], []
    for prompts in (PROMPTS, PROMPTS[:2]):
        outputs = engine.generate([{"prompt_token_ids": p} for p in prompts], sampling, use_tqdm=False)
        served += [list(output.outputs[0].token_ids) for output in outputs]
        cached += [output.num_cached_tokens for output in outputs]
    equal = served == expected + expected[:2]
    result = {
        "mode": "graph" if arguments.graph else "eager",
        "ranks": arguments.ranks,
        "equal": equal,
        "cached": cached,
    }
    print(json.dumps(result if equal else {**result, "served": served, "expected": expected}), flush=True)
    sys.exit(not equal)


if __name__ == "__main__":
    main()
