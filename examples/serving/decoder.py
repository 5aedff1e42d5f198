"""A decoder of a language model as serving code for Ascend is written.

Fused norms, rotary embeddings, keys and values in pages, one attention operator for prompts and single tokens, gated
units, and linear layers of 8-bit integers (W8A8); with experts, a mixture of gated units, of which each token goes to
two.

    python -m ascend_graph.host examples/serving/decoder.py [eager | ge | npugraph_ex] [experts]
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import torch
import torch_npu
from torch import Tensor, nn


@dataclass(frozen=True)
class Config:
    """The sizes of a model."""

    vocabulary: int = 64
    layers: int = 2
    hidden: int = 256
    heads: int = 2
    kv_heads: int = 1
    width: int = 128
    intermediate: int = 512
    block_size: int = 128
    blocks: int = 8
    longest: int = 256
    experts: int = 0
    experts_of_token: int = 2


class Linear(nn.Module):
    """Rows are quantized as they come, each by its own scale; the weight once, each column by its own."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        weight = torch.randn(inputs, outputs) / math.sqrt(inputs)
        scale = weight.abs().amax(0) / 127
        self.register_buffer("weight", torch.round(weight / scale).to(torch.int8))
        self.register_buffer("scale", scale)

    def forward(self, x: Tensor) -> Tensor:
        """[tokens, inputs] to [tokens, outputs]."""
        quantized, rows = torch_npu.npu_dynamic_quant(x)
        return torch_npu.npu_quant_matmul(
            quantized, self.weight, self.scale, pertoken_scale=rows, output_dtype=torch.bfloat16
        )


class Unit(nn.Module):
    """A gated unit."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.gate_up = Linear(config.hidden, 2 * config.intermediate)
        self.down = Linear(config.intermediate, config.hidden)

    def forward(self, x: Tensor) -> Tensor:
        """[tokens, hidden] to the same."""
        return self.down(torch_npu.npu_swiglu(self.gate_up(x)))


class Experts(nn.Module):
    """Gated units, of which a router gives some to each token."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        units = [Unit(config) for _ in range(config.experts)]
        self.router = nn.Parameter(torch.randn(config.hidden, config.experts).bfloat16() / math.sqrt(config.hidden))
        for name in ("gate_up", "down"):
            layers = [getattr(unit, name) for unit in units]
            self.register_buffer(name, torch.stack([layer.weight for layer in layers]))
            self.register_buffer(f"{name}_scale", torch.stack([layer.scale for layer in layers]))

    def forward(self, x: Tensor) -> Tensor:
        """[tokens, hidden] to the same: quantized rows in the order of their experts, and back."""
        c = self.config
        weights, experts, _ = torch_npu.npu_moe_gating_top_k_softmax((x @ self.router).float(), k=c.experts_of_token)
        rows, places, ends, scales = torch_npu.npu_moe_init_routing_v2(
            x,
            experts,
            active_num=experts.numel(),
            expert_num=c.experts,
            expert_tokens_num_type=0,
            expert_tokens_num_flag=True,
            quant_mode=1,
            active_expert_range=[0, c.experts],
            row_idx_type=0,
        )
        rows, scales = torch_npu.npu_grouped_matmul_swiglu_quant_v2(
            rows, [self.gate_up], [self.gate_up_scale], scales, ends, group_list_type=0
        )[:2]
        (rows,) = torch_npu.npu_grouped_matmul(
            [rows],
            [self.down],
            scale=[self.down_scale.bfloat16()],
            per_token_scale=[scales],
            group_list=ends,
            split_item=2,
            group_type=0,
            group_list_type=0,
            output_dtype=torch.bfloat16,
        )
        weights = (weights / weights.sum(-1, keepdim=True)).bfloat16()
        return torch_npu.npu_moe_finalize_routing(rows, None, None, None, weights, places, experts, drop_pad_mode=2)


class Layer(nn.Module):
    """Attention and a gated unit, or several of which each token goes to some."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        c = config
        self.norms = nn.ParameterList([nn.Parameter(torch.rand(c.hidden).bfloat16() + 0.5) for _ in range(2)])
        self.qkv = Linear(c.hidden, (c.heads + 2 * c.kv_heads) * c.width)
        self.out = Linear(c.heads * c.width, c.hidden)
        self.unit = Experts(c) if c.experts else Unit(c)
        pages = (c.blocks, c.block_size, c.kv_heads, c.width)
        self.register_buffer("keys", torch.zeros(pages, dtype=torch.bfloat16))
        self.register_buffer("values", torch.zeros(pages, dtype=torch.bfloat16))

    def attention(self, y: Tensor, angles: tuple[Tensor, Tensor], step: Step) -> Tensor:
        """[tokens, hidden] to the same, over what the pages hold and the tokens themselves."""
        c, (batch, length) = self.config, step.tokens.shape
        widths = [c.heads * c.width, c.kv_heads * c.width, c.kv_heads * c.width]
        q, k, v = (part.contiguous() for part in self.qkv(y).split(widths, -1))
        q, k = torch_npu.npu_apply_rotary_pos_emb(
            q.view(batch, length, c.heads, c.width), k.view(batch, length, c.kv_heads, c.width), *angles
        )
        torch_npu.npu_scatter_pa_kv_cache(
            k.view(-1, c.kv_heads, c.width),
            v.view(-1, c.kv_heads, c.width),
            self.keys,
            self.values,
            step.slots,
            cache_mode="Norm",
        )
        result, _ = torch_npu.npu_fused_infer_attention_score(
            q,
            self.keys.view(c.blocks, c.block_size, -1),
            self.values.view(c.blocks, c.block_size, -1),
            atten_mask=step.mask,
            actual_seq_lengths_kv=step.lengths,
            block_table=step.block_table,
            num_heads=c.heads,
            num_key_value_heads=c.kv_heads,
            scale=1 / math.sqrt(c.width),
            input_layout="BSND",
            sparse_mode=0 if step.mask is None else 3,
            block_size=c.block_size,
        )
        return self.out(result.reshape(-1, c.heads * c.width))


@dataclass(frozen=True)
class Step:
    """What a call of the model is about: the tokens of each sequence, and where they and those before them are."""

    tokens: Tensor  # [batch, length]
    positions: Tensor  # [batch, length]
    slots: Tensor  # [batch * length]: the place in the pages
    block_table: Tensor  # [batch, blocks]
    lengths: list[int]  # of each sequence, these tokens counted
    mask: Tensor | None  # of prompts


class Decoder(nn.Module):
    """The model."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Parameter(torch.randn(config.vocabulary, config.hidden).bfloat16())
        self.layers = nn.ModuleList([Layer(config) for _ in range(config.layers)])
        self.norm = nn.Parameter(torch.rand(config.hidden).bfloat16() + 0.5)
        self.head = Linear(config.hidden, config.vocabulary)
        frequencies = 10000.0 ** (-torch.arange(0, config.width, 2) / config.width)
        angles = torch.outer(torch.arange(config.longest), frequencies).repeat(1, 2)
        self.register_buffer("cosines", angles.cos().bfloat16())
        self.register_buffer("sines", angles.sin().bfloat16())

    def forward(
        self,
        tokens: Tensor,
        positions: Tensor,
        slots: Tensor,
        block_table: Tensor,
        lengths: list[int],
        mask: Tensor | None,
    ) -> Tensor:
        """Logits of the last token of each sequence, [batch, vocabulary]."""
        step = Step(tokens, positions, slots, block_table, lengths, mask)
        angles = (self.cosines[positions].unsqueeze(2), self.sines[positions].unsqueeze(2))
        residual = self.embedding[tokens].flatten(0, 1)
        y, _ = torch_npu.npu_rms_norm(residual, self.layers[0].norms[0])
        for number, layer in enumerate(self.layers):
            y, _, residual = torch_npu.npu_add_rms_norm(residual, layer.attention(y, angles, step), layer.norms[1])
            unit = layer.unit(y)
            last = number + 1 == len(self.layers)
            following = self.norm if last else self.layers[number + 1].norms[0]
            y, _, residual = torch_npu.npu_add_rms_norm(residual, unit, following)
        return self.head(y.view(*tokens.shape, -1)[:, -1].contiguous())


def prefill(config: Config, prompts: Tensor) -> Step:
    """Return the first call, for prompts of one length: sequence n has block n."""
    batch, length = prompts.shape
    table = torch.arange(batch, dtype=torch.int32).unsqueeze(1)
    positions = torch.arange(length).expand(batch, length)
    slots = (table * config.block_size + positions).flatten().to(torch.int32)
    mask = torch.ones(2048, 2048, dtype=torch.bool).triu(1)
    return Step(prompts, positions.contiguous(), slots, table, [length] * batch, mask)


def decode(config: Config, tokens: Tensor, length: int) -> Step:
    """Return a call for one more token of each sequence, whose length is ``length`` with it."""
    batch = tokens.size(0)
    table = torch.arange(batch, dtype=torch.int32).unsqueeze(1)
    positions = torch.full((batch, 1), length - 1)
    slots = (table * config.block_size + positions).flatten().to(torch.int32)
    return Step(tokens.view(batch, 1), positions, slots, table, [length] * batch, None)


def call(model: nn.Module, step: Step) -> Tensor:
    """Return the model on the device, its logits on the CPU."""
    given = (step.tokens, step.positions, step.slots, step.block_table)
    return model(*(t.npu() for t in given), step.lengths, None if step.mask is None else step.mask.npu()).cpu()


def compiled(model: nn.Module, way: str) -> nn.Module:
    """Return the model as it is, or compiled."""
    if way == "eager":
        return model
    if way == "ge":
        import torchair

        return torch.compile(model, backend=torchair.get_npu_backend(), dynamic=False, fullgraph=True)
    return torch.compile(model, backend=way, dynamic=False, fullgraph=True)


def main() -> None:
    """Generate a few tokens."""
    torch.manual_seed(0)
    way, *rest = sys.argv[1:] or ["eager"]
    config = Config(experts=int(rest[0]) if rest else 0)
    model = compiled(Decoder(config).eval().npu(), way)
    prompts = torch.randint(0, config.vocabulary, (2, 5))
    with torch.no_grad():
        tokens = call(model, prefill(config, prompts)).argmax(-1)
        generated = [tokens]
        for length in range(6, 9):
            tokens = call(model, decode(config, tokens, length)).argmax(-1)
            generated.append(tokens)
    print(torch.stack(generated, 1).tolist())


if __name__ == "__main__":
    main()
