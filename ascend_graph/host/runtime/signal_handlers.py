"""SIGINT and SIGTERM handlers of the program, kept when TorchAir and npugraph_ex are imported.

Both packages replace the program's handlers with their own, which finalize, then *ignore* the signal and send it again.
The first signal does only that, every further one nothing at all. Ctrl-C does not end a kernel, and a process that is
told to end continues. Their finalization also runs at exit.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType, ModuleType
from typing import Any

_Handler = Callable[[int, FrameType | None], Any] | int | None

_DEFAULTS: dict[signal.Signals, _Handler] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


def keep_handlers(module: ModuleType) -> Iterator[None]:
    """Restore the handlers in force before ``module`` was imported, or Python's own if it had been already."""

    def replaced(number: signal.Signals) -> bool:
        return hasattr(module, "_signal_handler") and signal.getsignal(number) is module._signal_handler

    before = {
        number: default if replaced(number) else signal.getsignal(number) for number, default in _DEFAULTS.items()
    }
    yield
    if threading.current_thread() is not threading.main_thread():
        return  # Python lets the main thread alone set handlers; neither did the module, unless it was imported before
    for number, handler in before.items():
        if replaced(number):
            signal.signal(number, _DEFAULTS[number] if handler is None else handler)  # None: not set by Python
