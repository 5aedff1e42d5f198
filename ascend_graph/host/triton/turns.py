"""Programs that wait for each other: each has a thread, and one of them runs at a time."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator


class _Ended(BaseException):
    """End of a program that has its turn after another one failed; a BaseException, because a program may catch Exception."""


class _Thread:
    """Thread of one program, and whose turn it is."""

    def __init__(self, program: Callable[[], None], turns: Turns) -> None:
        self.go, self.done = threading.Semaphore(0), False
        self.error: BaseException | None = None
        self._program, self._turns = program, turns
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        self.go.acquire()
        try:
            if not self._turns.ended:
                self._program()
        except BaseException as error:
            self.error = error
        self.done = True
        self._turns.back.release()


class Turns:
    """Turns of programs that run together, as the cores of a device would: each gives its turn away before it touches memory.

    Args:
        most: Number of programs that run together; the next one begins when one of them ends.
    """

    def __init__(self, most: int) -> None:
        self.back, self.ended = threading.Semaphore(0), False
        self._most = most
        self._now: _Thread | None = None

    def run(self, programs: Iterator[Callable[[], None]]) -> None:
        """Run the programs to their ends; the first error ends them all."""
        live: deque[_Thread] = deque()
        try:
            while True:
                while len(live) < self._most and (program := next(programs, None)) is not None:
                    live.append(_Thread(program, self))
                if not live:
                    return
                self._turn(live)
        finally:
            self.ended = True
            for thread in live:
                thread.go.release()

    def _turn(self, live: deque[_Thread]) -> None:
        self._now = live[0]
        live[0].go.release()
        self.back.acquire()
        if live[0].error is not None:
            raise live[0].error
        if live[0].done:
            live.popleft()
        else:
            live.rotate(-1)

    def give_away(self) -> None:
        """Let the others run until it is this program's turn again; a program calls this in its own thread."""
        mine = self._now
        if mine is None or self.ended:
            raise _Ended
        self.back.release()
        mine.go.acquire()
        if self.ended:
            raise _Ended
