"""The meeting of ranks: who has the store stays until the others know why it refuses them."""

from __future__ import annotations

import threading

from torch._C._distributed_c10d import PrefixStore, TCPStore

from ascend_graph.host.runtime import collectives


def test_the_stores_process_waits_for_those_that_have_not_read_yet() -> None:
    address = collectives.serve()
    host, port, key = collectives._parse(address)
    other = PrefixStore(key, TCPStore(host, port, is_master=False))
    other.set("rank1", "77 1 3 0")  # one of three ranks
    refused: list[ValueError] = []

    def meet() -> None:
        try:
            collectives.connect(address, 2, 0, 0, 0)
        except ValueError as error:
            refused.append(error)

    root = threading.Thread(target=meet)
    root.start()
    other.wait(["left0"])
    root.join(0.5)
    assert root.is_alive()
    assert other.get("rank0").decode().split()[1:] == ["0", "2", "0"]
    other.set("left1", "")
    root.join(10)
    assert not root.is_alive()
    assert "rank 1 takes part in a group of 3 ranks, and rank 0 in one of 2" in str(refused[0])
