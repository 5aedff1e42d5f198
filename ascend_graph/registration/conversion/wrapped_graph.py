"""Compiled graph that is called in another way, and is in all else the graph that it wraps."""

from __future__ import annotations

from typing import Any


class WrappedGraph:
    """Base of compiled graphs that change or check what a graph is called with.

    Args:
        compiled: The graph.
        again: What a kept program wraps its graph with, as the class itself was called: values that ``repr`` writes as Python.
    """

    def __init__(self, compiled: Any, *again: Any) -> None:
        self._compiled, self._again = compiled, again

    def get_code(self, *args: Any, **kwargs: Any) -> Any:
        """Return the program that TorchAir keeps of the graph (``cache_compile``), wrapped likewise if ``again`` says how."""
        code, kind = self._compiled.get_code(*args, **kwargs), type(self)
        if not self._again or not isinstance(code, str):
            return code
        values = ", ".join(map(repr, self._again))
        return f"{code}\nfrom {kind.__module__} import {kind.__name__}\nkernel = {kind.__name__}(kernel, {values})\n"

    def __getattr__(self, name: str) -> Any:
        if name == "_compiled":  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self._compiled, name)
