"""pytest's plugin that records which test reaches which planted fault: ``-p benchmarks.mutation.reach``.

Each worker has a file of one byte for each fault, which its processes share; after each test the bytes that are set become a line
of ``DIRECTORY/WORKER.jsonl``, where ``AG_REACH_DIRECTORY`` names the directory: the test, its seconds, its result, its faults.
"""

from __future__ import annotations

import json
import mmap
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest


class Recorder:
    """Holds the notes of one worker."""

    def __init__(self, directory: Path, worker: str) -> None:
        path = directory / f"{worker}.notes"
        path.write_bytes(bytes(4096))
        os.environ["AG_REACHED"] = str(path)
        with path.open("r+b") as file:
            self.notes = mmap.mmap(file.fileno(), 4096)
        self.lines = (directory / f"{worker}.jsonl").open("a", buffering=1)
        self.failed = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.notes[:] = bytes(4096)
        self.failed = False
        started = time.monotonic()
        result = yield
        seconds = round(time.monotonic() - started, 2)
        reached = [number for number, byte in enumerate(self.notes[:]) if byte]
        self.lines.write(json.dumps([item.nodeid, seconds, self.failed, reached]) + "\n")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed


def pytest_configure(config: pytest.Config) -> None:
    directory = os.environ.get("AG_REACH_DIRECTORY")
    worker = getattr(config, "workerinput", {}).get("workerid")
    if directory and worker:
        config.pluginmanager.register(Recorder(Path(directory), worker), "reach-recorder")
