"""Suppression of log records that PyTorch writes for its own tools."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator


@contextlib.contextmanager
def without_traces() -> Iterator[None]:
    """Detach the root logger's handlers from non-propagating loggers that are set below INFO, within the block.

    PyTorch traces compilations to a logger of its own if that has a handler. pytest adds its handlers to every
    non-propagating logger, so a report would be followed by hundreds of records with only a level and a PyTorch line.
    """
    everyone = logging.getLogger().handlers
    removed: list[tuple[logging.Logger, logging.Handler]] = []
    for logger in list(logging.root.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger) and not logger.propagate and logging.NOTSET < logger.level < logging.INFO:
            removed += [(logger, handler) for handler in logger.handlers if handler in everyone]
    for logger, handler in removed:
        logger.removeHandler(handler)
    try:
        yield
    finally:
        for logger, handler in removed:
            logger.addHandler(handler)
