import torch  # its libraries are what the extension links
import torch_npu

import custom_ops_lib

from .add_custom import add_custom as add_custom
