"""Survey of wheels: what their native libraries miss of the host runtime, their operator packages and their imports.

Nothing of a wheel is executed unless its imports are asked for; these run in processes that may die.
"""

from ascend_graph.doctor.wheels.archive import WheelError, opened
from ascend_graph.doctor.wheels.contents import PackageFacts, WheelSurvey, survey_wheel
from ascend_graph.doctor.wheels.imports import ImportResult, try_imports
from ascend_graph.doctor.wheels.needs import AvailableSymbols, LibraryFacts, readable

__all__ = [
    "AvailableSymbols",
    "ImportResult",
    "LibraryFacts",
    "PackageFacts",
    "WheelError",
    "WheelSurvey",
    "opened",
    "readable",
    "survey_wheel",
    "try_imports",
]
