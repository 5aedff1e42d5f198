"""Processes of a communicator: their rendezvous, and the gloo process group that serves them.

The bridge calls this for libhccl. ``csrc/host/hccl/communicator.h`` explains the choice of gloo and of Python.
"""

from __future__ import annotations

import contextlib
import os
from datetime import timedelta
from functools import cache
from itertools import count
from typing import Any

from torch._C._distributed_c10d import PrefixStore, ProcessGroupGloo, TCPStore
from torch.distributed import DistError

_LOOPBACK = "127.0.0.1"
_numbers = count()
#: Time that the store's process waits for others to read why it refuses them.
_LEAVING = timedelta(seconds=5)


def _connect_timeout() -> timedelta:
    """Return the timeout from CANN's variable, or its default."""
    return timedelta(seconds=int(os.environ.get("HCCL_CONNECT_TIMEOUT") or 120))


@cache
def _server() -> TCPStore:
    """Return this process's store, where the ranks of every communicator rooted in it meet."""
    return TCPStore(_LOOPBACK, 0, is_master=True, wait_for_workers=False)


def serve() -> str:
    """Return the address of a future communicator: that of the store, and its own key."""
    return f"{_LOOPBACK}:{_server().port}/{next(_numbers)}"


def _parse(address: str) -> tuple[str, int, str]:
    place, separator, key = address.partition("/")
    host, _, port = place.rpartition(":")
    if not separator or not host or not port.isdigit():
        raise ValueError(
            f"rootInfo holds {address[:64]!r}, no address of the host runtime; pass on what HcclGetRootInfo gave to the root"
        )
    return host, int(port), key


def connect(
    address: str, ranks: int, rank: int, device: int, window: int
) -> tuple[ProcessGroupGloo, list[int], list[int]]:
    """Return the process group of the ``ranks`` processes at ``address``, with their process ids and ``window`` values.

    Raises:
        ValueError: the address is not one of :func:`serve`; the processes do not agree on the number of ranks or on who
            is which; two ranks use one device.
        DistError: not all ranks were there within HCCL_CONNECT_TIMEOUT seconds.
    """
    host, port, key = _parse(address)
    timeout = _connect_timeout()
    store = PrefixStore(key, TCPStore(host, port, is_master=False, timeout=timeout))
    if store.add(f"claims of rank {rank}", 1) > 1:
        taken = store.get(f"rank{rank}").decode().split()[0]
        raise ValueError(f"rank {rank} of {ranks} is taken by process {taken}; each process needs a RANK of its own")
    store.set(f"rank{rank}", f"{os.getpid()} {device} {ranks} {window}")
    try:
        members = _members(store, ranks, rank)
    except ValueError:
        _leave(store, ranks, rank, is_server=_server.cache_info().currsize > 0 and _server().port == port)
        raise
    options: Any = ProcessGroupGloo._Options()  # type: ignore[attr-defined]
    options._devices = [ProcessGroupGloo.create_device(hostname=_LOOPBACK)]
    options._timeout = timeout
    options._threads = 1
    group = ProcessGroupGloo(store, rank, ranks, options)
    return group, [int(member[0]) for member in members], [int(member[3]) for member in members]


def _members(store: PrefixStore, ranks: int, rank: int) -> list[list[str]]:
    """Return process id, device, number of ranks and window of each rank; raise if they do not fit together."""
    members: list[list[str]] = []
    for i in range(ranks):
        members.append(store.get(f"rank{i}").decode().split())
        if int(members[i][2]) != ranks:
            raise ValueError(
                f"rank {i} takes part in a group of {members[i][2]} ranks, and rank {rank} in one of {ranks}: give all processes the same WORLD_SIZE"
            )
    devices = [int(member[1]) for member in members]
    for i, used in enumerate(devices):
        first = devices.index(used)
        if first != i:
            raise ValueError(
                f"ranks {first} and {i} use one device, npu:{used}; each rank needs its own: set "
                f"ASCEND_GRAPH_HOST_DEVICES={ranks} or more, and call torch.npu.set_device with the local rank"
            )
    return members


def _leave(store: PrefixStore, ranks: int, rank: int, *, is_server: bool) -> None:
    """Note that a rank refuses the communicator; the store's process waits for those that are there to read why.

    It ends with the error, and the store with it: they would be told that a connection was reset.
    """
    store.set(f"left{rank}", "")
    if is_server:  # nobody else asks more of the store: its process may have ended
        present = [i for i in range(ranks) if store.check([f"rank{i}"])]
        with contextlib.suppress(DistError):  # one that waits for another rank leaves later
            store.wait([f"left{i}" for i in present], min(_connect_timeout(), _LEAVING))
