from .cache import cache_directory as cache_directory
from .cache import locked as locked
from .library import CppLibrary as CppLibrary
from .library import package_directory as package_directory
from .library import torch_library as torch_library
from .toolchain import BuildError as BuildError
from .toolchain import compiler as compiler
from .toolchain import jobs as jobs
