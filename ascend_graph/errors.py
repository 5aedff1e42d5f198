"""Base class of every error that ascend_graph raises on purpose.

Each module defines its own subclasses next to the code that raises them. A message names the subject, the bad value and
the valid set, and tells what to write instead.
"""

from __future__ import annotations


class AscendGraphError(Exception):
    """Base class: ``except ascend_graph.AscendGraphError`` catches every error of this package."""
