"""Files of a project: those generated on every run, and those written once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ascend_graph.codegen.declarations import Declaration, section
from ascend_graph.codegen.eager_library import declared_functions
from ascend_graph.codegen.eager_library.cpp_operators import CppOperator
from ascend_graph.codegen.kernels.launch import launch_files, launch_function
from ascend_graph.codegen.kernels.source import KernelSources
from ascend_graph.codegen.rendering import GenerationError, render, write_if_different

from ascend_graph.versions import USUAL


def render_files(
    package: str, values: Mapping[str, Any], launch: str, text: str, declared_text: str
) -> tuple[dict[str, str | bytes], dict[str, str]]:
    """Return the files generated on every run, and those that are the author's once written."""
    generated: dict[str, str | bytes] = {
        f"{package}/_generated.py": render("eager_project/generated.py.jinja", **values),
        "csrc/generated/operators.h": render("eager_project/operators.h.jinja", **values),
        "csrc/generated/operators.cpp": render("eager_project/operators.cpp.jinja", **values),
        "csrc/generated/autograd.cpp": render("eager_project/autograd.cpp.jinja", **values),
        "csrc/generated/module.cpp": render("eager_project/module.cpp.jinja", **values),
        "csrc/generated/.clang-format": "DisableFormat: true\n",
        **{f"csrc/generated/ascend_graph/{path.name}": path.read_text() for path in _runtime_headers(launch)},
        f"{package}/op_proto.h": text,
        f"tests/{package}_calls.py": render("eager_project/calls.py.jinja", **values),
    }
    if declared_text:
        generated[f"{package}/{declared_functions.FILE}"] = declared_text
    if values["gradients"]:
        generated["csrc/generated/gradients.cpp"] = render("eager_project/gradients.cpp.jinja", **values)
    own = {
        "pyproject.toml": render("eager_project/pyproject.toml.jinja", **values),
        "setup.py": render("eager_project/setup.py.jinja", **values),
        "README.md": render("eager_project/README.md.jinja", **values),
        # A source distribution, which `python -m build` makes the wheel from, has the headers too.
        "MANIFEST.in": "graft csrc\ngraft tests\nglobal-exclude *.py[cod]\n",
        ".gitignore": "build/\ndist/\n*.egg-info/\n*.so\n__pycache__/\n",
        f"{package}/__init__.py": render("eager_project/init.py.jinja", **values),
        f"{package}/py.typed": "",
        f"tests/test_{package}.py": render("eager_project/test.py.jinja", **values),
    }
    if launch == "kernel":  # its kernels are here, so that a runner without an NPU has something to run
        own[".github/workflows/operators.yml"] = render("eager_project/workflow.yml.jinja", torch=USUAL, **values)
    return generated, own


def add_launches(
    kernel_sources: KernelSources | None,
    generated: dict[str, str | bytes],
    package: str,
    operators: Sequence[CppOperator],
    own: dict[str, str],
    drafts: list[str],
    target: Path,
) -> None:
    """Add the kernels and their launches to the files, and proposed launches to the drafts."""
    if kernel_sources is not None:
        generated |= launch_files(package, operators, kernel_sources)
        generated |= {f"kernels/{file}": (kernel_sources.root / file).read_bytes() for file in kernel_sources.files}
        own |= {f"csrc/launch/{o.file}.cpp": launch_function(package, o) for o in operators}
        drafts += [
            f"csrc/launch/{o.file}.cpp: the launch of {o.launch.kernel}"
            + (f", which has to say {', '.join(o.launch.unknown)}" if o.launch.unknown else "")
            for o in operators
            if o.launch and not (target / f"csrc/launch/{o.file}.cpp").exists()
        ]


def write_files(
    generated: Mapping[str, str | bytes],
    target: Path,
    own: Mapping[str, str],
    new: Mapping[str, Declaration],
    ini: Path,
    values: Mapping[str, Any],
    package: str,
) -> list[str]:
    """Write changed files, remove generated sources that are no longer generated, and return the names written."""
    written = [name for name, content in generated.items() if write_if_different(target / name, content)]
    written += [
        name
        for name, content in own.items()
        if not (target / name).exists() and write_if_different(target / name, content)
    ]
    if new or not ini.exists():
        before = (
            ini.read_text(encoding="utf-8") if ini.exists() else render("eager_project/operators.ini.jinja", **values)
        )
        write_if_different(ini, before.rstrip("\n") + "\n" + "".join(section(name, d) for name, d in new.items()))
        written.append(f"{package}/operators.ini")
    for stale in (*target.glob("csrc/generated/*.cpp"), *target.glob("kernels/generated/*.*")):
        if stale.relative_to(target).as_posix() not in generated:
            stale.unlink()
    return written


def _runtime_headers(launch: str) -> list[Path]:
    """Return the headers that generated kernels include; they are copied, so a project builds without ascend_graph."""
    import ascend_graph.eager

    for directory in ascend_graph.eager.__path__:
        sources = Path(directory) / "csrc"
        if (sources / "aclnn.h").is_file():
            names = (
                ("aclnn.h", "executor_cache.h")
                if launch == "aclnn"
                else ("kernel_launch.h", "device_bytes.h", "launch.h")
            )
            return [
                sources / name
                for name in (
                    *names,
                    "autograd.h",
                    "differentiate.h",
                    "device.h",
                    "lazy_bits.h",
                    "shapes.h",
                    "tangents.h",
                    "versions.h",
                )
            ]
    raise GenerationError(
        "the sources of the eager kernels are not installed; install ascend-graph from a wheel or with 'pip install -e .'"
    )
