"""Models of transformers, where it is installed: each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import preloaded
import pytest

pytest.importorskip("transformers")

LLAMA = """
import torch, torch_npu
from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=64,
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
    return preloaded.run(
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


#: A model of each family, as small as it gets; its reference is the same model on the CPU.
FAMILY = """
import sys, warnings
import torch, torch_npu
import transformers
from transformers import StaticCache

warnings.simplefilter("ignore")
name, way, what = sys.argv[1:]
own = {"Qwen3": {"head_dim": 8}, "Mixtral": {"num_local_experts": 4, "num_experts_per_tok": 2}}
config = getattr(transformers, name + "Config")(
    vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64, **own.get(name, {}),
)
tokens = torch.randint(0, 64, (2, 7), generator=torch.Generator().manual_seed(0))

def made(device):
    torch.manual_seed(0)
    return getattr(transformers, name + "ForCausalLM")(config).to(device)

def by_way(function):
    if way == "eager":
        return function
    if way == "ge":
        import torchair
        return torch.compile(function, backend=torchair.get_npu_backend(), dynamic=False)
    return torch.compile(function, backend=way, dynamic=False)

def trained(model, function, tokens):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(2):
        optimizer.zero_grad()
        loss = function(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
    return [loss.detach().cpu(), *(p.detach().cpu() for p in model.parameters())]

def generated(model, tokens):
    options = {"max_new_tokens": 5, "do_sample": False, "pad_token_id": 0, "disable_compile": True}
    if what == "static":
        options["past_key_values"] = StaticCache(config, max_cache_len=16)
        options["past_key_values"].early_initialization(2, 2, 8, torch.float32, tokens.device)
    with torch.no_grad():
        return [model.eval().generate(tokens, **options).cpu()]

cpu, npu = made("cpu"), made("npu")
if what == "training":
    want, got = trained(cpu, cpu, tokens), trained(npu, by_way(npu), tokens.npu())
else:
    want = generated(cpu, tokens)
    npu.forward = by_way(npu.forward)
    got = generated(npu, tokens.npu())
for a, b in zip(got, want, strict=True):
    torch.testing.assert_close(a, b, rtol=1e-3, atol=2e-4)
print("equal")
"""


@pytest.mark.parametrize("name", ["Llama", "Qwen2", "Qwen3", "Mixtral"])
@pytest.mark.parametrize(
    ("way", "what"),
    [
        ("eager", "dynamic"),
        ("eager", "static"),
        ("eager", "training"),
        ("npugraph_ex", "dynamic"),
        ("npugraph_ex", "static"),
        ("npugraph_ex", "training"),
        ("ge", "dynamic"),  # TorchAir has no converters for index_copy, of static caches, and silu_backward
    ],
)
def test_a_family_of_models_generates_and_learns_as_on_the_cpu(name: str, way: str, what: str) -> None:
    if name == "Mixtral" and way != "eager":
        pytest.skip("transformers reads on the host how many tokens each expert has, which no captured graph can")
    result = preloaded.run(
        [sys.executable, "-c", FAMILY, name, way, what], capture_output=True, text=True, check=False, env=os.environ
    )
    assert (result.returncode, result.stdout.split()[-1:]) == (0, ["equal"]), result.stderr[-2000:]
