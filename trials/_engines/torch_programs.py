"""Programs of PyTorch itself and of torch_npu's own additions: optimizers, precisions, files, loaders, profilers, modules."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import torch
import torch_npu
from torch import nn

from trials._engines.programs import Programs, named

PROGRAMS = Programs()


def drawn(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def network(device: str) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.GELU(), nn.Flatten(), nn.Linear(8 * 64, 5)
    ).to(device)


def batches(device: str) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(drawn(4, 3, 8, 8, seed=i).to(device), (torch.arange(4) + i).remainder(5).to(device)) for i in range(3)]


def trained(
    device: str, make: Callable[[Any], torch.optim.Optimizer], clip: float | None = None, needs_closure: bool = False
) -> Any:
    """Return losses and the state after three steps of an optimizer."""
    model = network(device)
    optimizer = make(model.parameters())
    losses = []
    for images, labels in batches(device):

        def closure(images: torch.Tensor = images, labels: torch.Tensor = labels) -> torch.Tensor:
            optimizer.zero_grad()
            found = nn.functional.cross_entropy(model(images), labels)
            found.backward()
            return found

        if needs_closure:
            losses.append(float(optimizer.step(closure)))  # type: ignore[arg-type]
            continue
        losses.append(closure().item())
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
    return {"losses": losses, **named(model.state_dict().items())}


OPTIMIZERS: dict[str, dict[str, Any]] = {
    "AdamW": {"lr": 1e-2}, "Adam": {"lr": 1e-2, "amsgrad": True}, "SGD": {"lr": 1e-2, "momentum": 0.9, "nesterov": True},
    "Adafactor": {"lr": 1e-2}, "RMSprop": {"lr": 1e-3, "momentum": 0.9}, "Adagrad": {"lr": 1e-2}, "Adadelta": {}, "Adamax": {},
    "NAdam": {}, "RAdam": {}, "ASGD": {}, "Rprop": {}, "LBFGS": {"max_iter": 3},
}  # fmt: skip
for one, chosen in OPTIMIZERS.items():
    PROGRAMS.add(
        f"optim/{one}",
        lambda device, one=one, chosen=chosen: trained(
            device, lambda p: getattr(torch.optim, one)(p, **chosen), needs_closure=one == "LBFGS"
        ),
    )
for one in ("AdamW", "Adam", "SGD", "Adagrad"):
    chosen = OPTIMIZERS[one]
    for kind in ("foreach", "fused"):
        PROGRAMS.add(
            f"optim/{one}-{kind}",
            lambda device, one=one, chosen=chosen, kind=kind: trained(
                device,
                lambda p: getattr(torch.optim, one)(p, **{**chosen, **({kind: True} if device == "npu" else {})}),
            ),
        )
PROGRAMS.add(
    "optim/AdamW-capturable",
    lambda device: trained(device, lambda p: torch.optim.AdamW(p, lr=1e-2, capturable=device == "npu")),
)
PROGRAMS.add("optim/clip", lambda device: trained(device, lambda p: torch.optim.AdamW(p, lr=1e-2), clip=0.1))

#: torch_npu's fused optimizers, and PyTorch's of the same rule.
FUSED = {
    "NpuFusedAdamW": ("AdamW", {"lr": 1e-2}), "NpuFusedAdam": ("Adam", {"lr": 1e-2}), "NpuFusedSGD": ("SGD", {"lr": 1e-2, "momentum": 0.9}),
    "NpuFusedAdadelta": ("Adadelta", {}), "NpuFusedRMSprop": ("RMSprop", {"lr": 1e-3}), "NpuFusedAdamP": None, "NpuFusedLamb": None,
    "NpuFusedBertAdam": None, "NpuFusedRMSpropTF": None,
}  # fmt: skip


def npu_fused(device: str, name: str) -> Any:
    """Return three steps of a fused optimizer; one without a counterpart in PyTorch has to lower the loss."""
    counterpart = FUSED[name]
    if counterpart is not None:
        rule, options = counterpart
        make = getattr(torch_npu.optim, name) if device == "npu" else getattr(torch.optim, rule)
        return trained(device, lambda p: make(p, **options))
    if device == "cpu":
        return True
    losses = trained(device, lambda p: getattr(torch_npu.optim, name)(p, lr=1e-3))["losses"]
    return all(torch.tensor(losses).isfinite())


for one in FUSED:
    PROGRAMS.add(f"npu-optim/{one}", lambda device, one=one: npu_fused(device, one))


def amp(device: str, dtype: torch.dtype, scaler: str | None = None, **options: Any) -> torch.Tensor:
    """Return the losses of a training in mixed precision."""
    model = network(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, **(options if device == "npu" else {}))
    made_of = {"torch": lambda: torch.amp.GradScaler(device), "npu": torch_npu.npu.amp.GradScaler}
    scale = made_of[scaler]() if scaler and device == "npu" else torch.amp.GradScaler(enabled=False)
    losses = []
    for images, labels in batches(device) * 2:
        optimizer.zero_grad()
        with torch.autocast(device, dtype):
            loss = nn.functional.cross_entropy(model(images), labels)
        scale.scale(loss).backward()
        scale.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scale.step(optimizer)
        scale.update()
        losses.append(loss.item())
    return torch.tensor(losses).to(dtype)


PROGRAMS.add("amp/bfloat16", lambda device: amp(device, torch.bfloat16))
PROGRAMS.add("amp/float16", lambda device: amp(device, torch.float16, "torch"))
PROGRAMS.add("amp/float16-npu", lambda device: amp(device, torch.float16, "npu"))
PROGRAMS.add("amp/float16-fused", lambda device: amp(device, torch.float16, "torch", fused=True))
PROGRAMS.add(
    "amp/float16-npu-fused",
    lambda device: amp(device, torch.float16, "npu", fused=True),
    refusal="unexpected keyword argument 'grad_scaler'",
)


@PROGRAMS("amp/overflow")
def overflow(device: str) -> Any:
    """Return what a step leaves whose gradients overflow: the weight as it was, and half of the scale."""
    if device == "cpu":
        return [1.0, 32768.0]
    weight = nn.Parameter(torch.ones(1, device=device))
    scaler, optimizer = torch.amp.GradScaler("npu"), torch.optim.SGD([weight], lr=1.0)
    scaler.scale(weight * float("inf")).backward()
    scaler.step(optimizer)
    scaler.update()
    return [weight.item(), scaler.get_scale()]


@PROGRAMS("files/safetensors")
def files(device: str) -> Any:
    from safetensors.torch import load_file, load_model, save_file, save_model

    model = network(device)
    with tempfile.TemporaryDirectory() as directory:
        save_file({name: one.contiguous() for name, one in model.state_dict().items()}, f"{directory}/a.safetensors")
        loaded = load_file(f"{directory}/a.safetensors", device=device)
        save_model(model, f"{directory}/b.safetensors")
        other = network(device)
        load_model(other, f"{directory}/b.safetensors", device=device)
        return [
            {one.device.type == device for one in loaded.values()},
            named(loaded.items()),
            named(other.state_dict().items()),
        ]


@PROGRAMS("files/torch")
def torch_files(device: str) -> Any:
    found = []
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/a.pt"
        torch.save(network(device).state_dict(), path)
        for place in (None, "cpu", device, torch.device(device), lambda storage, location: storage):
            loaded = torch.load(path, map_location=place, weights_only=True)
            found.append(named(loaded.items()))
        torch.save(network("cpu").state_dict(), path)
        loaded = torch.load(path, map_location=f"{device}:0" if device == "npu" else device, mmap=device == "cpu")
        return [*found, named(loaded.items()), {one.device.type for one in loaded.values()} == {device}]


@PROGRAMS("files/distributed-checkpoint")
def distributed_checkpoint(device: str) -> Any:
    from torch.distributed import checkpoint

    with tempfile.TemporaryDirectory() as directory:
        checkpoint.save({"model": network(device).state_dict()}, checkpoint_id=directory, no_dist=True)
        state = {"model": {name: torch.zeros_like(one) for name, one in network(device).state_dict().items()}}
        checkpoint.load(state, checkpoint_id=directory, no_dist=True)
        return named(state["model"].items())


class Rows(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Rows of numbers."""

    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((3,), float(index))


@PROGRAMS("data/pinned")
def pinned(device: str) -> Any:
    """Loaders with workers and pinned memory, copied without waiting."""
    found = []
    for workers in (0, 2):
        pin = device == "npu"
        loader = torch.utils.data.DataLoader(Rows(), batch_size=4, num_workers=workers, pin_memory=pin)
        for rows in loader:
            assert rows.is_pinned() == pin
            found.append(rows.to(device, non_blocking=True) + 1)
    return found


@PROGRAMS("profiler/torch")
def profiled(device: str) -> Any:
    with torch.profiler.profile(record_shapes=True, with_stack=True, profile_memory=True) as profile:
        network(device)(batches(device)[0][0]).sum().backward()
    names = {one.key for one in profile.key_averages()}
    return sorted(
        name
        for name in names
        if name in ("aten::conv2d", "aten::linear", "aten::batch_norm", "aten::gelu", "aten::sum")
    )


@PROGRAMS("checkpoint")
def checkpointed(device: str) -> Any:
    """Activations that are computed again: with and without reentry, and for dropout with the same random numbers."""
    from torch.utils.checkpoint import checkpoint, checkpoint_sequential

    found = []
    for reentrant in (False, True):
        model = network(device)
        inputs = batches(device)[0][0].requires_grad_()
        checkpoint(model, inputs, use_reentrant=reentrant).square().sum().backward()
        found.append([inputs.grad, named((name, p.grad) for name, p in model.named_parameters())])
    model = network(device)
    inputs = batches(device)[0][0].requires_grad_()
    checkpoint_sequential(model, 2, inputs, use_reentrant=False).square().sum().backward()
    found.append(inputs.grad)
    value = torch.ones(100, device=device, requires_grad=True)
    dropped = checkpoint(lambda x: nn.functional.dropout(x, 0.5), value, use_reentrant=False)
    dropped.sum().backward()
    return [*found, torch.equal(value.grad, dropped.detach())]  # type: ignore[arg-type]


@PROGRAMS("parametrize")
def parametrized(device: str) -> Any:
    from torch.nn.utils import parametrizations, prune

    found = []
    for wrap in (parametrizations.weight_norm, parametrizations.orthogonal):
        torch.manual_seed(0)
        layer = wrap(nn.Linear(4, 4)).to(device)
        layer(drawn(2, 4).to(device)).square().sum().backward()
        found += [layer.weight, named((name, p.grad) for name, p in layer.named_parameters())]
    torch.manual_seed(0)
    layer = parametrizations.spectral_norm(nn.Linear(4, 4)).to(device)
    found.append(layer(drawn(2, 4).to(device)))
    layer = nn.utils.skip_init(nn.Linear, 4, 4, device=device)
    nn.init.constant_(layer.weight, 0.5)
    prune.l1_unstructured(layer, "weight", 0.25)
    return [*found, layer.weight.sum(), nn.utils.parameters_to_vector(network(device).parameters()).norm()]


@PROGRAMS("modules/ema-swa")
def averaged(device: str) -> Any:
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn

    model = network(device)
    averages = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for images, labels in batches(device):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        averages.update_parameters(model)
    update_bn([images for images, _ in batches(device)], averages)
    return named(averages.state_dict().items())


@PROGRAMS("modules/transformer")
def transformer(device: str) -> Any:
    torch.manual_seed(0)
    model = nn.Transformer(16, 2, 1, 1, 32, dropout=0.0, batch_first=True).to(device)
    source, target = drawn(2, 5, 16).to(device), drawn(2, 4, 16, seed=2).to(device)
    mask = nn.Transformer.generate_square_subsequent_mask(4, device=device)
    model(source, target, tgt_mask=mask, tgt_is_causal=True).square().mean().backward()
    found = named((name, p.grad) for name, p in model.named_parameters())
    with torch.no_grad():
        return [found, model.eval()(source, target), model.encoder(source)]


@PROGRAMS("modules/recurrent")
def recurrent(device: str) -> Any:
    found = []
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        torch.manual_seed(0)
        layer = kind(4, 6, num_layers=2, bidirectional=True, batch_first=True).to(device)
        packed = nn.utils.rnn.pack_padded_sequence(drawn(3, 5, 4).to(device), torch.tensor([5, 3, 2]), batch_first=True)
        result, _ = nn.utils.rnn.pad_packed_sequence(layer(packed)[0], batch_first=True)
        result.square().sum().backward()
        found += [result, named((name, p.grad) for name, p in layer.named_parameters())]
    return found


@PROGRAMS("func")
def functional(device: str) -> Any:
    """Gradients for each sample, Hessians and functional calls."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1)).to(device)
    parameters = dict(model.named_parameters())

    def loss(parameters: dict[str, torch.Tensor], row: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(model, parameters, (row,)).square().sum()

    rows = drawn(5, 4).to(device)
    by_sample = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, rows)
    return [
        named(by_sample.items()),
        torch.func.hessian(lambda row: loss(parameters, row))(rows[0]),
        torch.func.jacrev(model)(rows[0]),
    ]


@PROGRAMS("streams")
def streams(device: str) -> Any:
    values = drawn(64).to(device)
    if device == "cpu":
        return values * 2 + 1
    stream, event = torch.npu.Stream(), torch.npu.Event(enable_timing=True)
    with torch.npu.stream(stream):
        doubled = values * 2
        event.record()
    torch.npu.current_stream().wait_event(event)
    return doubled + 1


@PROGRAMS("accelerator")
def accelerator(device: str) -> Any:
    """PyTorch's interface of any accelerator."""
    if device == "cpu":
        return ["npu", 1, True, True]
    torch.accelerator.synchronize()
    allocated = torch.accelerator.memory_allocated()
    kept = torch.ones(1 << 20, device=torch.accelerator.current_accelerator())
    more = torch.accelerator.memory_allocated() - allocated >= kept.nbytes
    return [
        torch.accelerator.current_accelerator().type,
        torch.accelerator.device_count(),
        more,
        torch.accelerator.is_available(),
    ]  # type: ignore[union-attr]


@PROGRAMS("compile/aot_eager")
def aot_eager(device: str) -> Any:
    model = torch.compile(network(device), backend="aot_eager")
    model(batches(device)[0][0]).square().sum().backward()
    return named((name, p.grad) for name, p in model.named_parameters())


PROGRAMS.add(
    "compile/default",
    lambda device: (
        torch.compile(lambda x: x.sin().sum(-1))(drawn(3, 4).to(device))
        if device == "npu"
        else drawn(3, 4).sin().sum(-1)
    ),
    refusal="AssertionError",
)


@PROGRAMS("export")
def exported(device: str) -> Any:
    program = torch.export.export(network(device).eval(), (batches(device)[0][0],))
    with tempfile.TemporaryDirectory() as directory:
        torch.export.save(program, f"{directory}/a.pt2")
        return torch.export.load(f"{directory}/a.pt2").module()(batches(device)[1][0])


@PROGRAMS("script")
def scripted(device: str) -> Any:
    model = network(device).eval()
    images = batches(device)[0][0]
    return [torch.jit.trace(model, images)(images), torch.jit.script(model)(images)]
