"""TorchAir is imported once, here: its imports warn of deprecations, which are errors in tests."""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch_npu.dynamo.torchair  # noqa: F401
