"""Python processes of tests that start with torch, torch_npu and TorchAir imported.

Importing them takes a process 6 to 12 seconds. :func:`run` and :class:`Process` have the interface of ``subprocess.run``
and ``subprocess.Popen`` for commands of ``sys.executable``; the program runs in a fork of a server that imported everything and used no
device. A test of imports, of the launcher, or of what is read while libraries are loaded uses :mod:`subprocess`.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import IO, Any

#: Modules that the server imports, as far as there are such.
MODULES = (
    "numpy", "torch", "torch_npu", "torchair", "torchair._ge_concrete_graph.fx2ge_converter", "torch.testing",
    "torch.distributed", "torch.distributed.tensor", "torch.distributed.fsdp", "torch.multiprocessing", "torch._inductor.compile_fx",
    "ascend_graph", "ascend_graph.registration", "ascend_graph.host", "ascend_graph.checks",
    "ascend_graph.host.runtime.single_op", "ascend_graph.host.runtime.engine", "ascend_graph.host.packages.load",
)  # fmt: skip

_PR_SET_PDEATHSIG = 1


class Process:
    """A program in a fork of the server, with the part of ``subprocess.Popen``'s interface that tests use."""

    def __init__(
        self,
        command: Sequence[str | os.PathLike[str]],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        text: bool = True,
    ) -> None:
        if str(command[0]) != sys.executable:
            raise ValueError(f"command[0] must be sys.executable, got {command[0]!r}: use subprocess")
        if not text:
            raise ValueError("text must be True: use subprocess for bytes")
        self.args = command
        self.returncode: int | None = None
        self.stdout, out = _pipe(stdout)
        self.stderr, err = (self.stdout, out) if stderr == subprocess.STDOUT else _pipe(stderr)
        request = {
            "arguments": [os.fspath(part) for part in command[1:]],
            "environment": dict(os.environ if env is None else env),
            "directory": os.fspath(cwd or Path.cwd()),
        }
        self._status, theirs = socket.socketpair()
        try:
            _server().start(request, [1 if out is None else out, 2 if err is None else err, theirs.fileno()])
        finally:
            theirs.close()
            for end in {out, err} - {None}:
                os.close(end)  # type: ignore[arg-type]
        self._reading = threading.Lock()
        self._lines = self._status.makefile()
        self.pid = int(self._lines.readline())

    def poll(self) -> int | None:
        """Return the exit status, or None while the program runs."""
        with self._reading:
            if self.returncode is None and select.select([self._status], [], [], 0)[0]:
                self.returncode = int(self._lines.readline())
                self._lines.close()
                self._status.close()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the program, and return its exit status: minus the signal's number if one ended it."""
        until = None if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            if until is not None and time.monotonic() > until:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            with contextlib.suppress(ValueError):  # another thread read the status, and closed it
                select.select(
                    [self._status], [], [], 1.0 if until is None else max(min(until - time.monotonic(), 1.0), 0.0)
                )
        return self.returncode  # type: ignore[return-value]

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the program has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Read both outputs to their ends, and wait."""
        until = None if timeout is None else time.monotonic() + timeout
        said = {"out": "", "err": ""}

        def read(name: str, stream: IO[str]) -> None:
            said[name] = stream.read()

        streams = {"out": self.stdout, "err": None if self.stderr is self.stdout else self.stderr}
        readers = [
            threading.Thread(target=read, args=(name, stream), daemon=True)
            for name, stream in streams.items()
            if stream
        ]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(None if until is None else max(until - time.monotonic(), 0.0))
            if reader.is_alive():
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)  # type: ignore[arg-type]
        self.wait(None if until is None else until - time.monotonic())
        for stream in streams.values():
            if stream:
                stream.close()
        return said["out"], said["err"]

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdout, self.stderr):
            if stream:
                stream.close()
        self.wait()


def run(
    command: Sequence[str | os.PathLike[str]],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    timeout: float | None = None,
    check: bool = False,
    capture_output: bool = True,
    text: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run a Python program as ``subprocess.run(command, capture_output=True, text=True)`` does.

    Args:
        command: ``sys.executable``, options of Python (``-W``, ``-X faulthandler``), then ``-c CODE``, ``-m MODULE`` or a
            script, and its arguments.
        env: The environment. What torch_npu reads while it is loaded has no effect, such as the packages in which its own
            EXEC_NPU_CMD looks for functions.
        cwd: The working directory.
        timeout: Seconds, after which the program is killed and ``subprocess.TimeoutExpired`` is raised.
        check: Raise ``subprocess.CalledProcessError`` if the exit status is not 0.
        capture_output: Must be true.
        text: Must be true.
    """
    if not capture_output:
        raise ValueError("capture_output must be True: use subprocess")
    with Process(command, env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=text) as process:
        try:
            out, err = process.communicate(timeout)
        except BaseException:
            process.kill()
            process.wait()
            raise
    done = subprocess.CompletedProcess(process.args, process.wait(), out, err)
    if check:
        done.check_returncode()
    return done


def _pipe(asked: int | None) -> tuple[IO[str] | None, int | None]:
    """Return the end that is read and the one that is written; none if the output is the test's own."""
    if asked is None:
        return None, None
    if asked != subprocess.PIPE:
        raise ValueError("stdout and stderr must be subprocess.PIPE: use subprocess")
    reading, writing = os.pipe()
    return os.fdopen(reading), writing


class _Server:
    """The process that imports the modules and forks, and the connection to it."""

    def __init__(self) -> None:
        self._connection, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, __file__, str(theirs.fileno())]
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)

    def start(self, request: Mapping[str, Any], descriptors: Sequence[int]) -> None:
        """Ask for a program; the descriptors are its output, its errors, and where its status is written."""
        text = os.memfd_create("request")
        try:
            os.write(text, json.dumps(request).encode())
            sent = array.array("i", [text, *descriptors])
            self._connection.sendmsg([b"."], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, sent)])
        finally:
            os.close(text)

    def close(self) -> None:
        """Close the connection, which ends the server."""
        self._connection.close()
        self._process.wait()


_started: list[_Server] = []


def _server() -> _Server:
    if not _started:
        _started.append(_Server())
        atexit.register(_started[0].close)
    return _started[0]


def _programs(connection: socket.socket) -> Iterator[tuple[dict[str, Any], list[int]]]:
    """Fork for each request. In the fork the request is yielded; the server itself never yields."""
    running: dict[int, tuple[int, int]] = {}  # pidfd: pid, where its status is written
    while True:
        ready, _, _ = select.select([connection, *running], [], [])
        for ended in ready:
            if ended is connection:
                continue
            pid, status = running.pop(ended)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            with contextlib.suppress(BrokenPipeError):
                os.write(status, f"{code}\n".encode())
            os.close(status)
            os.close(ended)
        if connection not in ready:
            continue
        data, descriptors, _, _ = socket.recv_fds(connection, 1, 8)
        if not data:
            os._exit(0)  # its programs end with it
        with os.fdopen(descriptors[0]) as text:
            text.seek(0)
            request = json.load(text)
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != server:
                os._exit(1)
            connection.close()
            for pidfd, (_, status) in running.items():
                os.close(pidfd)
                os.close(status)
            yield request, descriptors[1:]
            return
        for descriptor in descriptors[1:3]:
            os.close(descriptor)
        os.write(descriptors[3], f"{pid}\n".encode())
        running[os.pidfd_open(pid)] = (pid, descriptors[3])


def _run(arguments: list[str]) -> None:
    """Run what the command line names as ``__main__``."""
    while arguments[0] in ("-W", "-X"):
        option, value, *arguments = arguments
        if option == "-W":
            warnings.simplefilter(value)  # type: ignore[arg-type]
        elif value == "faulthandler":
            importlib.import_module("faulthandler").enable()
    main = ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    if arguments[0] == "-c":
        sys.argv, sys.path[0] = ["-c", *arguments[2:]], ""
        exec(compile(arguments[1], "<string>", "exec"), main.__dict__)
    elif arguments[0] == "-m":
        sys.argv, sys.path[0] = arguments[1:], str(Path.cwd())
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        script = Path(arguments[0])
        sys.argv, sys.path[0] = arguments, str(script.resolve().parent)
        main.__dict__["__file__"] = arguments[0]
        exec(compile(script.read_bytes(), arguments[0], "exec"), main.__dict__)


def _read_again(torch: Any) -> None:
    """Set what Python, torch and OpenMP read from the environment when they started."""
    sys.path[1:1] = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry not in sys.path]
    if threads := os.environ.get("OMP_NUM_THREADS"):
        torch.set_num_threads(int(threads))
    torch.distributed.set_debug_level_from_env()  # TORCH_DISTRIBUTED_DEBUG


def leave_guards_unmeasured() -> None:
    """Keep dynamo from measuring how long guards take, for a figure in its logs.

    It flushes the processor's cache first, at each compilation: 30 to 50 ms, as much as many a compilation.
    """
    guards = importlib.import_module("torch._dynamo.guards")
    if hasattr(guards, "profile_guard_manager"):  # from torch 2.6 on
        guards.profile_guard_manager = lambda *_: 0.0


def collect_less_often() -> None:
    """Keep what is imported out of garbage collections, and let there be fewer: they are 8 % of a worker's time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def _main(connection: socket.socket) -> None:
    for name in MODULES:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    leave_guards_unmeasured()
    collect_less_often()
    for request, (out, err, status) in _programs(connection):
        os.dup2(out, 1)
        os.dup2(err, 2)
        for descriptor in (out, err, status):
            os.close(descriptor)
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["directory"])
        _read_again(sys.modules["torch"])
        try:
            _run(request["arguments"])
        except Exception as error:
            frames = error.__traceback__
            while frames and frames.tb_frame.f_code.co_filename == __file__:
                frames = frames.tb_next
            sys.excepthook(type(error), error.with_traceback(frames), frames)
            sys.exit(1)


if __name__ == "__main__":
    _main(socket.socket(fileno=int(sys.argv[1])))
