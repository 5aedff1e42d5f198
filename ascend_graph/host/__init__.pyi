"""The public names of the host runtime; ``ascend_graph/host/__init__.py`` imports each on first use."""

from .ascendc.pipes import pipes_checked as pipes_checked
from .packages.build import build_operator_package as build_operator_package
from .packages.format import OperatorPackageError as OperatorPackageError
from .packages.format import open_package as open_package
from .projects.build import build_project_package as build_project_package
from .projects.model import BuildOptions as BuildOptions
from .runtime.engine.operators import find_kernel as find_kernel
from .runtime.engine.structure import is_structure as is_structure
from .runtime.missing_kernels import lint_graph as lint_graph
from .toolkit import host_environment as host_environment
