"""The public names; ``ascend_graph/__init__.py`` imports each on first use."""

from . import raw_ops as raw_ops
from .aclnn import load_aclnn as load_aclnn
from .binding import BindingWarning as BindingWarning
from .binding import CannMismatchError as CannMismatchError
from .binding import CannMismatchWarning as CannMismatchWarning
from .checks.calls.samples import Sample as Sample
from .checks.explain import explain as explain
from .checks.guard import MetaGuard as MetaGuard
from .checks.guard import MetaMismatchError as MetaMismatchError
from .checks.opcheck import opcheck as opcheck
from .checks.report import CheckError as CheckError
from .checks.traces import TraceError as TraceError
from .checks.traces import add_costs as add_costs
from .dispatch.fitting import MetaError as MetaError
from .errors import AscendGraphError as AscendGraphError
from .inference import InferenceError as InferenceError
from .inference import NarrowRelationWarning as NarrowRelationWarning
from .inference import infer_relation as infer_relation
from .packages.autoload import OperatorsWarning as OperatorsWarning
from .packages.autoload import load_operators as load_operators
from .packages.register import PackageWarning as PackageWarning
from .packages.register import RegisteredPackage as RegisteredPackage
from .packages.register import register_package as register_package
from .packages.register import registered_packages as registered_packages
from .pictures.tracing import picture as picture
from .prototypes import find_prototype as find_prototype
from .prototypes import load_prototypes as load_prototypes
from .registration import Argument as Argument
from .registration import RegisteredOp as RegisteredOp
from .registration import dtype_number as dtype_number
from .registration import register_aclnn as register_aclnn
from .registration import register_kernel as register_kernel
from .registration import register_op as register_op
from .registration import registered_ops as registered_ops
from .registration.defining import define_from_function as define_from_function
from .registration.dimensions.batching import VmapLoopWarning as VmapLoopWarning
from .registration.dimensions.dtensor_backend import dtensor_backend as dtensor_backend
from .registration.dimensions.independent_dims import BatchError as BatchError
from .shapes import Relation as Relation
from .shapes import RelationError as RelationError
from .shapes import ShapeError as ShapeError
from .shapes import parse_relation as parse_relation
from .shapes.relation_files import RelationFileWarning as RelationFileWarning
from .shapes.relation_files import load_relations as load_relations

__version__: str
