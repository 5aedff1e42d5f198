"""What could take the process down, or keep it for ever, is an error instead: each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap


def run(code: str, seconds: float = 300, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=seconds, env={**os.environ, **environment}
    )


def test_npugraph_ex_refuses_tensors_of_the_cpu() -> None:
    """It rebuilds a graph's inputs as tensors of the npu backend, over the CPU's memory; work on that is not captured."""
    result = run(
        """
        import torch, torch_npu
        for make in (lambda: (torch.ones(3),), lambda: (torch.ones(3).npu(), torch.tensor(0), torch.tensor(1))):
            model = torch.compile(lambda *t: sum(t) * 2 + 1, backend="npugraph_ex", dynamic=False)
            try:
                print(model(*make()))
            except RuntimeError as error:
                print(error)
        x = torch.ones(3).npu()
        print(torch.compile(lambda t: t * 2 + 1, backend="npugraph_ex", dynamic=False)(x).tolist())
        """
    )
    assert result.returncode == 0, result.stderr
    one, many, right = result.stdout.splitlines()
    assert one.startswith(
        "aten::copy_: a Float tensor of shape [3] is the npu backend's, but lies in the memory of cpu"
    )
    assert many.startswith("aten::_foreach_copy_: a Long tensor of shape []")
    assert right == "[3.0, 3.0, 3.0]"
