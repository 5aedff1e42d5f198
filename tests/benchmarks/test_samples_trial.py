"""The trial of samples: what it reads from a README, and how it judges what a sample did."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from trials._readmes import blocks, listed_directories, modes
from trials.samples import families, judged

VALUES = {"CANN": "/toolkit", "SOC_VERSION": "Ascend910B1"}
README = """
# A sample
```
├── Sample
│   ├── output     // results
│   └── run.sh     // builds and runs
```
```bash
git clone https://example.com/samples.git
```
```bash
cd ${git_clone_path}/samples/operator/Sample
```
```bash
export ASCEND_INSTALL_PATH=$HOME/Ascend/ascend-toolkit/latest
```
```bash
cp patch/*.cpp ${THEIR_DIRECTORY}/ops   # a part of a script that is explained
```
```bash
bash run.sh -r [RUN_MODE] -v [SOC_VERSION]
```
- RUN_MODE：支持参数为[cpu / npu]
```bash
./custom_opp_<target os>_<target architecture>.run
```
"""


def sample(root: Path, readme: str, script: str = "exit 0") -> Path:
    directory = root / "operator/Sample"
    directory.mkdir(parents=True)
    (directory / "README.md").write_text(readme)
    (directory / "run.sh").write_text(script)
    return root


def test_the_commands_of_a_readme(tmp_path: Path) -> None:
    here = PurePosixPath("operator/Sample")
    found = list(blocks(README, here, sample(tmp_path, README), VALUES, ["npu", "sim", "cpu"]))
    assert [one.script for one in found] == [
        "bash run.sh -r npu -v Ascend910B1",
        "bash run.sh -r cpu -v Ascend910B1",
        "./custom_opp_*.run",
    ]
    assert {one.directory for one in found} == {here}
    assert found[0].settings == ("export ASCEND_INSTALL_PATH=/toolkit",)
    assert modes(README) == ["cpu", "npu"]
    assert listed_directories(README) == ["output"]


def test_a_script_runs_where_it_lies(tmp_path: Path) -> None:
    (sample(tmp_path, README) / "operator/Sample/test").mkdir()
    text = "```bash\ncd ${git_clone_path}/samples/operator/Sample/test\n```\n```bash\nbash run.sh\n```\n"
    (found,) = blocks(text, PurePosixPath("operator/Sample"), tmp_path, VALUES, [])
    assert found.directory == PurePosixPath("operator/Sample")


def test_a_readme_that_builds_heads_those_below_it(tmp_path: Path) -> None:
    sample(tmp_path, README)
    for name in ("Sample/Call", "Other"):
        (tmp_path / "operator" / name).mkdir()
        (tmp_path / "operator" / name / "README.md").write_text("```bash\nbash run.sh\n```\n")
    (tmp_path / "operator/README.md").write_text("```bash\ncmake --version\n```\n")
    found = families(tmp_path, ["operator"])
    assert {str(head): len(members) for head, members in found.items()} == {"operator/Other": 1, "operator/Sample": 2}


@pytest.mark.parametrize(
    ("code", "text", "status"),
    [
        (0, "-- Configuring done\nerror ratio: 0.0000, tolrence: 0.0010\ntest pass\n", "passed"),
        (0, "g++ -Wall -Werror -o main.o\n0 failed\n", "passed"),
        (0, "ERROR: verify result failed!\n", "failed"),
        (0, "[ERROR] result error\n", "failed"),
        (1, "ascend_graph: compiling ascend_graph_host_bridge …\nmake: *** [all] Error 2\n", "failed"),
        (1, "error: bisheng: no such source: x.cpp\n", "refused"),
        (1, "atc: the host runtime of ascend_graph does not compile models\n", "refused"),
        (1, "Error: Python3 version is not 3.9\n", "unmet"),
        (None, "", "failed"),
    ],
)
def test_what_a_block_did(code: int | None, text: str, status: str) -> None:
    assert judged(code, text)[0] == status


@pytest.mark.slow
def test_the_trial_of_a_checkout(tmp_path: Path) -> None:
    """It counts, and leaves checkout and toolkit as they were."""
    readme = "```bash\nbash run.sh -v [SOC_VERSION]\n```\n"
    script = (
        'test -n "$ASCEND_HOME_PATH" || exit 3\ntouch here\nmkdir "$ASCEND_OPP_PATH/vendors/mine"\necho "$2"\n'
        "atc --mode 0 || true\n"
    )
    sample(tmp_path / "checkout", readme, script)
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        "samples",
        str(tmp_path / "checkout"),
        "--work",
        str(tmp_path / "work"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert {name: result[name] for name in ("samples", "passed", "refused")} == {
        "samples": 1,
        "passed": 1,
        "refused": 0,
    }
    assert "Ascend910B1" in (tmp_path / "work/operator+Sample-0.log").read_text()
    assert not (tmp_path / "checkout/operator/Sample/here").exists()
    assert not (Path(os.environ["ASCEND_OPP_PATH"]) / "vendors/mine").exists()
