"""Registration and checks outside of the modes that the caller has entered."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch.overrides import _pop_mode_temporarily
from torch.utils._python_dispatch import _disable_current_modes

_AUTOCAST = ("AutocastCPU", "AutocastPrivateUse1")


@contextlib.contextmanager
def outside_modes() -> Iterator[None]:
    """Leave the caller's default device, dispatch modes and autocast for the block.

    An operator may be registered where a model is built, ``with torch.device("npu"):``, or at its first lookup while a
    program is traced with fake tensors. The calls that check it need tensors of their own.
    """
    with contextlib.ExitStack() as stack:
        while torch._C._len_torch_function_stack():
            stack.enter_context(_pop_mode_temporarily())
        stack.enter_context(_disable_current_modes())
        for name in _AUTOCAST:
            keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, name))
            stack.enter_context(torch._C._ExcludeDispatchKeyGuard(keys))
        yield
