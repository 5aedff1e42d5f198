"""TorchAir is imported once, here: its imports warn of deprecations, which are errors in tests. Its backend is made
before that of
npugraph_ex, which registers the same decompositions: the other way round the wheel refuses them as registered twice."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from torch._functorch import config as functorch

from ascend_graph.environment import processor

sys.path.insert(0, str(Path(__file__).parent))

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch_npu.dynamo.torchair

    torch_npu.dynamo.torchair.get_npu_backend()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of other processors than the one that this process is; those without a mark are of the
    default one."""
    here, other = [], []
    for item in items:
        mark = item.get_closest_marker("processor")
        of_this_directory = Path(__file__).parent in item.path.parents
        name = mark.args[0] if mark is not None else processor({})
        (other if of_this_directory and name != processor(os.environ) else here).append(item)
    items[:] = here
    if other:
        config.hook.pytest_deselected(items=other)


@pytest.fixture(autouse=True)
def _aliases_of_the_wheel() -> Iterator[None]:
    """Some operators of torch_npu return what they were given, and their schemas do not say so: tests of others are
    refused that."""
    if not hasattr(functorch, "error_on_custom_op_aliasing"):  # torch before 2.11
        yield
        return
    with functorch.patch(error_on_custom_op_aliasing=False):
        yield
