import torch  # noqa: F401  its libraries are what the extension links
import torch_npu  # noqa: F401

import custom_ops_lib  # noqa: F401  isort: skip

from .add_custom import add_custom as add_custom
