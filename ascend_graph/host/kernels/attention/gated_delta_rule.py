"""Linear attention by the gated delta rule."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import torch

from ascend_graph.host.kernels.checks import check_count
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor


@host_kernel("RecurrentGatedDeltaRule", writes={"state": 1})
def recurrent_gated_delta_rule(
    query: T,
    key: T,
    value: T,
    beta: T | None,
    state: T,
    actual_seq_lengths: T | None = None,
    ssm_state_indices: T | None = None,
    g: T | None = None,
    gk: T | None = None,
    num_accepted_tokens: T | None = None,
    *,
    scale_value: float = 1.0,
) -> tuple[T, T]:
    """Compute linear attention token by token: the state decays, forgets the key's value and takes the new one.

    A sequence begins with the state of its last accepted token. Each token's state is written to the index given for
    it.
    """
    if actual_seq_lengths is None or ssm_state_indices is None:
        raise ValueError("actual_seq_lengths and ssm_state_indices are required")
    y = torch.zeros_like(value)
    if value.is_meta:
        return y, state
    lengths, places = actual_seq_lengths.tolist(), ssm_state_indices.reshape(-1).tolist()
    if sum(lengths) != value.size(0) or len(places) < value.size(0):
        raise ValueError(
            f"actual_seq_lengths {lengths}, {len(places)} ssm_state_indices: there are {value.size(0)} tokens"
        )
    if places and not 0 <= min(places) <= max(places) < state.size(0):
        raise ValueError(f"ssm_state_indices {places}: there are states 0 to {state.size(0) - 1}")
    accepted = [1] * len(lengths) if num_accepted_tokens is None else num_accepted_tokens.tolist()
    check_count("num_accepted_tokens", accepted, len(lengths), "sequence of actual_seq_lengths")
    repeats = value.size(1) // query.size(1)
    q, k = (x.float().repeat_interleave(repeats, 1) for x in (query, key))
    start = 0
    for length, count in zip(lengths, accepted, strict=True):
        if not 1 <= count <= max(length, 1):
            raise ValueError(f"num_accepted_tokens {accepted}: expected 1 to the length of the sequence, {length}")
        current = state[places[start + count - 1]].float() if length else state[0].float()
        for t in range(start, start + length):
            if g is not None:
                current = current * g[t].float().exp().reshape(-1, 1, 1)
            if gk is not None:
                current = current * gk[t].float().exp().unsqueeze(1)
            change = value[t].float() - torch.einsum("nvk,nk->nv", current, k[t])
            if beta is not None:
                change = change * beta[t].float().unsqueeze(-1)
            current = current + change.unsqueeze(-1) * k[t].unsqueeze(1)
            y[t] = (torch.einsum("nvk,nk->nv", current, q[t]) * scale_value).to(y.dtype)
            state[places[t]] = current.to(state.dtype)
        start += length
    return y, state


@host_kernel("ChunkGatedDeltaRule", values=("actual_seq_lengths",))
def chunk_gated_delta_rule(
    query: T,
    key: T,
    value: T,
    beta: T,
    initial_state: T,
    actual_seq_lengths: T,
    g: T | None = None,
    *,
    scale_value: float = 1.0,
) -> tuple[T, T]:
    """Compute RecurrentGatedDeltaRule for whole sequences, with an initial and a final state for each."""
    tokens, heads = value.shape[:2]
    expected = {
        "query": (tokens, query.size(1), key.size(-1)),
        "key": tuple(query.shape),
        "beta": (tokens, heads),
        "g": (tokens, heads),
        "initial_state": (actual_seq_lengths.numel(), heads, value.size(-1), key.size(-1)),
    }
    given = {"query": query, "key": key, "beta": beta, "g": g, "initial_state": initial_state}
    for name, tensor in given.items():
        if tensor is not None and tuple(tensor.shape) != expected[name]:
            raise ValueError(
                f"{name} of shape {tuple(tensor.shape)}: with value {tuple(value.shape)} {expected[name]} is expected"
            )
    if heads % query.size(1):
        raise ValueError(f"value has {heads} heads; expected a multiple of the {query.size(1)} heads of query and key")
    lengths = actual_seq_lengths.tolist()
    if min(lengths, default=0) < 0 or sum(lengths) != tokens:
        raise ValueError(f"actual_seq_lengths {lengths}: there are {tokens} tokens")
    # The recurrent form writes a state for each token; a sequence's last one is what remains.
    states = initial_state.new_zeros((tokens + 1, *initial_state.shape[1:]), dtype=torch.float32)
    out, final, start = torch.zeros_like(value), initial_state.clone(), 0
    for sequence, length in enumerate(lengths):
        if length == 0:
            continue
        part, places = slice(start, start + length), torch.arange(1, length + 1)
        states[1] = initial_state[sequence].float()
        out[part], _ = recurrent_gated_delta_rule(
            query[part],
            key[part],
            value[part],
            beta[part],
            states,
            torch.tensor([length]),
            places,
            None if g is None else g[part],
            scale_value=scale_value,
        )
        final[sequence] = states[length].to(final.dtype)
        start += length
    return out, final
