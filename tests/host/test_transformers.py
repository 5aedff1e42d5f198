"""Models of transformers, where it is installed: each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("transformers")

LLAMA = """
import torch, torch_npu
from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
)
model = LlamaForCausalLM(config).eval()
tokens = torch.randint(0, 64, (2, 7))
options = {"max_new_tokens": 5, "do_sample": False, "pad_token_id": 0, "disable_compile": True}
want = model.generate(tokens, **options).tolist()
model.npu()
model.forward = torch.compile(model.forward, backend="npugraph_ex", dynamic=False)
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    program = LLAMA + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=600, env=os.environ
    )


def test_llama_generates_with_a_static_cache_in_captured_graphs() -> None:
    """A second cache lies elsewhere: its graphs are captured anew, in the memory of the first."""
    result = run(
        """
        for _ in range(2):
            cache = StaticCache(config, max_cache_len=16)
            cache.early_initialization(2, 2, 8, torch.float32, torch.device("npu:0"))
            print(model.generate(tokens.npu(), past_key_values=cache, **options).tolist() == want)
        """
    )
    assert (result.returncode, result.stdout.split()) == (0, ["True", "True"]), result.stderr[-2000:]


def test_a_static_cache_that_begins_on_the_cpu_is_refused_in_a_captured_graph() -> None:
    """transformers moves the cache's length to the device at the first call: in the graph, a copy that waits."""
    result = run(
        """
        try:
            model.generate(tokens.npu(), cache_implementation="static", **options)
        except RuntimeError as error:
            print(error)
        print(torch.ones(2).npu().add(1).tolist())
        """
    )
    assert result.returncode == 0, result.stderr[-2000:]
    message, after = result.stdout.splitlines()
    assert message.startswith("aten::copy_ from cpu to npu:0: the stream is capturing a model")
    assert after == "[2.0, 2.0]"
