"""Adoption of a repository: its operators read from its own sources, and registered by one written module.

Nothing is compiled or imported, and torch is not needed. Each registration follows from evidence that the sources state;
what they do not state stays a line to complete.
"""

from ascend_graph.adoption.adopt import AdoptionReport, adopt
from ascend_graph.adoption.decision import Decision, State
from ascend_graph.adoption.module import AdoptedModuleError
from ascend_graph.adoption.repository import AdoptionError

__all__ = ["AdoptedModuleError", "AdoptionError", "AdoptionReport", "Decision", "State", "adopt"]
