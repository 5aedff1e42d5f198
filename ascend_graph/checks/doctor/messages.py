"""``doctor --message``: what the messages of frequent reports mean, as a table; and what this machine says of the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_graph.checks.doctor.finding import Finding
from ascend_graph.checks.doctor.installation import standard_library
from ascend_graph.checks.doctor.operators import extension, function, seen, torch_symbols, why_missing
from ascend_graph.errors import AscendGraphError
from ascend_graph.host.toolkit import real_cann, toolkit_directory
from ascend_graph.versions import check

#: What looks at this machine for what a message is about.
_Look = Callable[[re.Match[str], Mapping[str, str]], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Known:
    """A message that is known. Its texts may name the groups of its pattern: ``{function}``."""

    name: str
    pattern: str
    cause: str
    #: A command that shows whether this is the cause.
    look: str
    #: The line that mends it.
    mend: str
    #: What this machine says of it.
    here: _Look | None = None
    #: It says that something failed, and other messages beside it say why.
    is_general: bool = False


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A known message as it was found in a text."""

    name: str
    line: str
    cause: str
    look: str
    mend: str
    here: tuple[Finding, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The diagnosis as values that JSON has."""
        return {
            "name": self.name,
            "line": self.line,
            "cause": self.cause,
            "look": self.look,
            "mend": self.mend,
            "here": [finding.as_dict() for finding in self.here],
        }

    def __str__(self) -> str:
        lines = [self.line, f"  cause: {self.cause}"]
        for finding in self.here:
            lines.append(f"  here:  {finding.text}")
            if finding.is_wrong and finding.mend:
                lines.append(f"         → {finding.mend}")
        return "\n".join([*lines, f"  look:  {self.look}", f"  mend:  {self.mend}"])


def _function_here(found: re.Match[str], environment: Mapping[str, str]) -> Iterator[Finding]:
    yield from function(found["function"], environment)


def _symbol_here(found: re.Match[str], environment: Mapping[str, str]) -> Iterator[Finding]:
    symbols = torch_symbols()
    path = Path(found["library"])
    if path.is_file():
        yield from extension(path)
    elif symbols:
        is_there = found["symbol"] in symbols
        text = (
            f"the torch that is installed here has {found['symbol']}"
            if is_there
            else why_missing(found["symbol"], symbols)
        )
        yield Finding("torch", text)
    try:
        check(environment)
    except AscendGraphError as error:
        yield Finding("torch and torch_npu", str(error), True)


def _cann_here(found: re.Match[str], environment: Mapping[str, str]) -> Iterator[Finding]:
    cann = real_cann(environment)
    library = f"{found['library']}.so"
    if cann:
        yield Finding(
            "CANN", f"a CANN is installed: {cann}", True, "source its set_env.sh in the shell that starts python"
        )
    elif (toolkit_directory() / "lib64" / library).exists():
        yield Finding(
            "CANN",
            "there is no CANN on this machine; the host runtime has the library",
            True,
            "ascend-graph run script.py",
        )


def _standard_here(found: re.Match[str], environment: Mapping[str, str]) -> Iterator[Finding]:
    library = standard_library(environment)
    if library is not None and found["interface"] in library.interfaces:
        version = ".".join(map(str, library.interfaces[found["interface"]]))
        yield Finding(
            "C++ library", f"a process started here loads {library.path}, which has {found['interface']}_{version}"
        )


def _codes(*codes: str) -> str:
    """Where a message gives one of these error codes, not a number of something else."""
    return rf"(?:error[ _]?code(?: is|:|=)?\s*|error:?\s*|ret(?:Code)?\s?=\s?|failed[:,]?\s*|\()(?P<code>{'|'.join(codes)})\b"


#: Libraries of CANN, by how their names begin.
_OF_CANN = (
    r"lib(?:hccl|hcomm|ascendcl|ascend_|acl_|aclnn|ge_|graph|opapi|nnopbase|platform|runtime|msprof|profapi|ascendalog|"
    r"unified_dlog|tiling|register|error_manager|cust_|lowering|exe_graph|metadef|mmpa|slog|c_sec|tsdclient|datatransfer)\w*"
)
#: A mangled C++ name of PyTorch or torch_npu.
_TORCH_NAME = r"_Z\w*?(?:2at|3c10|5torch|6caffe2|6at_npu|7c10_npu|9torch_npu)\w*"

#: What is known, the particular before the general. Messages are those that programs print; no entry knows a project.
TABLE: tuple[Known, ...] = (
    Known(
        "function of an operator package, in a worker",
        r"(?im)^.*(?:worker|\brank\d|\bpid=\d)[^\n]*\b(?P<function>aclnn\w+?)(?:GetWorkspaceSize)?"
        r"(?: or aclnn\w+)? (?:is )?(?:not in libopapi\.so|in no library of operators)",
        "torch_npu looks for {function} in the operator packages that ASCEND_CUSTOM_OPP_PATH named when it was loaded, then in CANN. "
        "The process that says so is a worker: it has the variables of what started it, and a variable that a program sets after "
        "`import torch`, or only in the first process, comes too late for it.",
        "in the worker: print(os.environ.get('ASCEND_CUSTOM_OPP_PATH')); here: ascend-graph doctor --op {function}",
        "export ASCEND_CUSTOM_OPP_PATH=PACKAGE  # in the shell of every node, before python starts; Ray: "
        "runtime_env={{'env_vars': {{'ASCEND_CUSTOM_OPP_PATH': 'PACKAGE'}}}}",
        _function_here,
    ),
    Known(
        "function in no library",
        r"\b(?P<function>aclnn\w+?)(?:GetWorkspaceSize)?(?: or aclnn\w+)? (?:is )?(?:not in libopapi\.so|in no library of operators)",
        "No library that torch_npu searches has {function}: it is of an operator package that is not selected in this process, or of "
        "a CANN newer than the one that is installed.",
        "ascend-graph doctor --op {function}",
        "export ASCEND_CUSTOM_OPP_PATH=PACKAGE  # before python starts; or install the CANN that the caller was written for",
        _function_here,
    ),
    Known(
        "libraries of ATB",
        r"(?:undefined symbol: (?P<symbol>_ZN?K?(?:3atb|3Mki)\w*)|(?P<library>libatb|libasdops|libtbe_adapter)\.so[^\n]*cannot open)",
        "ATB (of CANN's package nnal) is not there, is of another version than torch_npu was made for, or was selected with the other "
        "ABI of C++ strings than torch has.",
        "echo $ATB_HOME_PATH; python -c 'import torch; print(torch._C._GLIBCXX_USE_CXX11_ABI)'",
        "source /usr/local/Ascend/nnal/atb/set_env.sh --cxx_abi=1  # of the nnal of CANN's version; 0 where the above prints False",
    ),
    Known(
        "kernels of another host runtime",
        r"(?P<library>[^\s:'\"]+\.so[\w.]*): undefined symbol: (?P<symbol>_ZN\w*12ascendc_host\w*)",
        "{library} has kernels that were compiled for the host runtime of another version of ascend_graph.",
        "ascend-graph --version",
        "build it again: ascend-graph build PROJECT -o OPP for an operator package, pip install --no-build-isolation PROJECT for a wheel",
    ),
    Known(
        "extension of another torch",
        rf"(?P<library>[^\s:'\"]+\.so[\w.]*): undefined symbol: (?P<symbol>{_TORCH_NAME})",
        "{library} was compiled against another torch or torch_npu than the installed one: pip builds in an environment of its own, "
        "with whatever torch it finds, unless it is told not to.",
        "ascend-graph doctor {library}",
        "pip install --no-build-isolation --no-deps --force-reinstall PROJECT  # compiles it against the installed torch; for "
        "libtorch_npu.so itself: pip install the torch of its number",
        _symbol_here,
    ),
    Known(
        "CANN of another version",
        r"(?P<library>[^\s:'\"]+\.so[\w.]*): undefined symbol: "
        r"(?P<symbol>(?:acl|Hccl|hccl|rt|ge|Msprof|hal)[A-Za-z_]\w*|_ZN?K?(?:2ge|4gert|4hccl)\w*)",
        "{library} needs {symbol} of CANN, and the CANN whose libraries are found first does not have it: it is older than {library} "
        "was made for, or LD_LIBRARY_PATH names another one first.",
        "ascend-graph doctor; echo $LD_LIBRARY_PATH",
        "source CANN/set_env.sh  # of the version that torch_npu's release notes name, in a new shell",
    ),
    Known(
        "driver of the NPU",
        r"(?P<library>libascend_hal|libdrvdsmi\w*|libdcmi)\.so[\d.]*: cannot open shared object file",
        "{library}.so is of the NPU's driver, which is not visible: there is none here, or the container was started without it.",
        "ls /usr/local/Ascend/driver/lib64 /dev/davinci*",
        "docker run --device /dev/davinci0 --device /dev/davinci_manager --device /dev/devmm_svm --device /dev/hisi_hdc "
        "-v /usr/local/Ascend/driver:/usr/local/Ascend/driver …  # without an NPU: ascend-graph run script.py",
    ),
    Known(
        "extension before torch",
        r"(?P<library>lib(?:torch|c10)(?:_cpu|_python|_npu)?)\.so[\d.]*: cannot open shared object file",
        "A library that links {library}.so was loaded before torch was: nobody else knows where that is.",
        "python -c 'import torch, torch_npu; import EXTENSION'",
        "import torch, torch_npu  # before the extension is imported",
    ),
    Known(
        "torch built for CUDA",
        r"(?P<library>lib(?:torch_cuda\w*|c10_cuda|cudart|cublas|cudnn|nccl))\.so[\d.]*: cannot open shared object file",
        "Something here is compiled for CUDA: an extension, or a torch that pip took from an index with CUDA builds.",
        "python -c 'import torch; print(torch.version.cuda)'; ascend-graph doctor",
        "pip install --force-reinstall torch==VERSION+cpu --index-url https://download.pytorch.org/whl/cpu",
    ),
    Known(
        "CANN is not selected",
        rf"(?P<library>{_OF_CANN})\.so[\d.]*: cannot open shared object file"
        r"|Please check that the cann package is installed",
        "torch_npu links CANN's libraries, and the loader does not find them: CANN is not installed, or its set_env.sh was not sourced "
        "in the shell that started python.",
        "ascend-graph doctor; ls /usr/local/Ascend/ascend-toolkit/latest",
        "source /usr/local/Ascend/ascend-toolkit/set_env.sh  # without an NPU: ascend-graph run script.py",
        lambda found, environment: _cann_here(found, environment) if found["library"] else iter(()),
    ),
    Known(
        "operator without a meta function",
        r"(?P<operator>[\w.]+(?:::[\w.]+)?): attempted to run this operator with Meta tensors"
        r"|There was no fake impl registered for (?P<operator2>[\w.:]+)"
        r"|UnsupportedOperatorException: (?P<operator3>[\w.:]+)"
        r"|[Uu]nsupported operator: (?P<operator4>[\w.:]+)"
        r"|Could not run '(?P<operator5>[\w.:]+)' with arguments from the 'Meta' backend",
        "Compiling and capturing run a program on tensors without data first, for which {operator} needs a meta (fake) function, and "
        "none is registered in this process: it was never written, or the module that registers it is not imported here.",
        "ascend-graph infer {operator} --import EXTENSION  # prints the shape relation that its kernel shows",
        'ascend_graph.register_op("OpType", eager=torch.ops.NAMESPACE.NAME, shape="x[...] -> y[...]")  '
        "# or torch.library.register_fake; in every process",
    ),
    Known(
        "data of a tensor that is only traced",
        r"Cannot access data pointer of Tensor \(e\.g\. FakeTensor|The tensor has a non-zero number of elements, but its data is not "
        r"allocated yet",
        "Code that is traced calls a C++ function with tensors directly (pybind11, ctypes), not an operator of torch: graphs see only "
        "operators.",
        "the last line of Python above it in the traceback names the call",
        'ascend_graph.register_op("OpType", eager=torch.ops.NAMESPACE.NAME, shape="…")  # after TORCH_LIBRARY or '
        "torch.library.custom_op has made it an operator",
    ),
    Known(
        "two Python implementations of one operator",
        r"Trying to override a python impl for (?P<key>[\w.]+) on operator (?P<operator>[\w.:]+)",
        "Two modules register a {key} function for {operator} in Python. Where both are torch_npu's own, a graph for npugraph_ex was "
        "compiled before the first one for GE: the wheel then registers what npugraph_ex has registered already.",
        "the two last files of the traceback that register are the two modules",
        'torch.compile(torch.neg, backend=torchair.get_npu_backend())(torch.ones(1, device="npu"))  '
        '# before anything is compiled with backend="npugraph_ex"',
    ),
    Known(
        "library loaded twice",
        r"Only a single TORCH_LIBRARY can be used to register the namespace (?P<name>\w+)"
        r"|Tried to register an operator \((?P<operator>[\w.:]+)[^\n]*with the same name and overload name multiple times",
        "Two libraries define the same operators: two builds of one extension are loaded, such as an installed one and one in the "
        "working directory.",
        "python -c 'import EXTENSION; print(EXTENSION.__file__)'  # in the working directory, and in another one",
        "pip uninstall EXTENSION  # until none is left; then install one",
    ),
    Known(
        "operator that is not defined",
        r"'_OpNamespace' '(?P<namespace>\w+)' object has no attribute '(?P<name>\w+)'",
        "No library that this process has loaded defines {namespace}::{name}: its extension is not imported here (workers import for "
        "themselves), its import failed earlier and was only a warning (look above for `undefined symbol`), or it is of an older version.",
        "python -c 'import torch, torch_npu, EXTENSION; print(torch.ops.{namespace}.{name})'",
        "import EXTENSION  # in the process that calls it; where that fails: ascend-graph doctor EXTENSION.so",
    ),
    Known(
        "C++ library too old",
        r"(?P<library>[^\s:'\"]*libstdc\+\+\.so[\d.]*): version [`'](?P<interface>GLIBCXX|CXXABI)_(?P<version>[\d.]+)' not found "
        r"\(required by (?P<by>[^)]+)\)",
        "{by} needs {interface}_{version} of the C++ library, and {library}, which is found first (of an environment of conda, or of "
        "LD_LIBRARY_PATH), is older.",
        "strings {library} | grep {interface}_ | sort -V | tail -1",
        'export LD_LIBRARY_PATH="$(dirname "$(g++ -print-file-name=libstdc++.so.6)"):$LD_LIBRARY_PATH"  '
        "# conda: conda install -c conda-forge libstdcxx-ng",
        _standard_here,
    ),
    Known(
        "system too old",
        r"(?P<library>[^\s:'\"]*lib(?:c|m)\.so[\d.]*): version [`']GLIBC_(?P<version>[\d.]+)' not found \(required by (?P<by>[^)]+)\)",
        "{by} was made on a system with a newer C library (glibc {version}) than this one; a system has one C library.",
        "ldd --version",
        "docker run …  # an image with glibc {version}, or the build of {by} for manylinux of this system's glibc",
    ),
    Known(
        "program for CUDA",
        r"Torch not compiled with CUDA enabled|Found no NVIDIA driver on your system",
        'The program asks for a CUDA device: "cuda" or .cuda() in it, or a device given as a number alone, which is CUDA\'s.',
        "the last line of the program in the traceback",
        'from torch_npu.contrib import transfer_to_npu  # before the program\'s imports; or write "npu" in it',
    ),
    Known(
        "two accelerators",
        r"Two accelerators cannot be used at the same time in PyTorch: (?P<first>\w+) and (?P<second>\w+)",
        "Two libraries register a device for PyTorch: {first} and {second}. Twice the same: torch_npu is loaded twice, once by an "
        "extension that PyTorch imports with itself.",
        "python -c \"from importlib.metadata import entry_points; print(entry_points(group='torch.backends'))\"",
        "export TORCH_DEVICE_BACKEND_AUTOLOAD=0  # then import torch, torch_npu, and the rest after it",
    ),
    Known(
        "NPU in a forked process",
        r"Cannot re-initialize NPU in forked subprocess",
        "A process that had used the NPU was forked: the copy cannot use it.",
        "what calls torch.npu before the workers start",
        'torch.multiprocessing.set_start_method("spawn")  # before the first worker; or use no torch.npu before',
    ),
    Known(
        "torch_npu beside its sources",
        r"No module named 'torch_npu\._C'",
        "python imports torch_npu from the working directory, which has its sources, not from where it is installed.",
        "python -c \"import importlib.util as u; print(u.find_spec('torch_npu').origin)\"",
        "cd  # to another directory",
    ),
    Known(
        "no torch_npu",
        r"No module named 'torch_npu'",
        "torch_npu is not installed in the environment of this python.",
        "python -m pip list | grep -i torch",
        "pip install 'ascend-graph[torch]'",
    ),
    Known(
        "operator that has no kernel for this processor",
        r"(?:binary_info_config\.json of socVersion \[(?P<soc>\w+)\] does not support opType \[(?P<operator>\w+)\]"
        r"|Optype \[(?P<operator2>\w+)\] of Ops kernel \[\w+\] is unsupported)",
        "No installed package has a kernel of {operator} for this processor, dtype and format: CANN's package of kernels is of another "
        "processor or is missing, or the operator package was not built for it.",
        "ls $ASCEND_OPP_PATH/built-in/op_impl/ai_core/tbe/kernel; npu-smi info",
        "install CANN's kernels package of this processor; for an operator of your own: ascend-graph gen op-project DIRECTORY … "
        "--soc PROCESSOR",
    ),
    Known(
        "first phase of an aclnn function",
        r"(?P<function>aclnn\w+)[^\n]*\b561[01]0[03]\b",
        "{function} was found, and CANN found no kernel or tiling for this call: CANN's package of kernels for this processor is not "
        "installed, or the operator does not take these dtypes, shapes or formats.",
        "export ASCEND_SLOG_PRINT_TO_STDOUT=1 ASCEND_GLOBAL_LOG_LEVEL=3  # the log names what was refused",
        "install CANN's kernels package of this processor (Ascend-cann-kernels-…), of the toolkit's version",
    ),
    Known(
        "arguments of an aclnn function",
        r"(?P<function>aclnn\w+)[^\n]*\b16100[123]\b",
        "{function} refuses an argument: a null tensor (161001), or a dtype, shape or format that it does not take (161002).",
        "ascend-graph show {function}; export ASCEND_SLOG_PRINT_TO_STDOUT=1",
        "ascend-graph check MODULE  # tries every dtype and absent input of the prototype and says which call is refused",
    ),
    Known(
        "kernel that fails on the device",
        rf"{_codes('507011', '507015', '507035', '507054')}"
        r"|(?:vector core|aicore|aivec|aicpu) (?:exception|error)",
        "A kernel failed while it ran, most often by memory beyond its tensors. It is reported by a later operation: the traceback does "
        "not show which operator it was.",
        "ASCEND_LAUNCH_BLOCKING=1 python script.py  # fails at the operator itself",
        "ascend-graph check MODULE --strict  # on the host runtime a kernel that touches memory beside its tensors is named",
    ),
    Known(
        "no device in this thread",
        rf"{_codes('107002')}|[Tt]he context is (?:empty|null)|Check whether acl\.rt\.set_context or acl\.rt\.set_device is called",
        "The thread that calls has no device: each thread has to select one, and a forked process has none.",
        "the thread's first lines",
        "torch.npu.set_device(torch.npu.current_device())  # first thing in the thread",
    ),
    Known(
        "device that is not there",
        rf"{_codes('107001', '507008', '507033')}|TsdOpen failed|Failed to open device|dcmi (?:model|module) initialized? failed|ret is -80\d\d|drvErr=87",
        "The driver does not give the process a device: there is none of this number, another container has it, or the container was "
        "started without its files.",
        "npu-smi info; ls /dev/davinci*; ascend-graph doctor",
        "docker run --device /dev/davinci0 --device /dev/davinci_manager --device /dev/devmm_svm --device /dev/hisi_hdc "
        "-v /usr/local/Ascend/driver:/usr/local/Ascend/driver …",
    ),
    Known(
        "not in a capture",
        rf"{_codes('107025')}|while (?:the )?stream is (?:in )?captur|not permitted when (?:the )?stream is capturing",
        "An operation that a device cannot record was called while a graph was captured: a copy to the host, an operator whose result "
        "depends on values, a synchronisation, or work on a stream that the capturing one has not joined.",
        "ascend-graph run script.py  # the host runtime refuses the same and names the operator",
        "move it before the capture, or leave the operator out of the graph",
    ),
    Known(
        "memory of the device",
        rf"NPU out of memory|{_codes('207000', '207001')}",
        "The device's memory is used up, or in pieces that are too small.",
        "npu-smi info; torch.npu.memory_summary()",
        "export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True  # against pieces; otherwise smaller batches",
    ),
    Known(
        "operator compiler of CANN does not start",
        r"GEInitialize failed|init runtime platform info failed|build op model failed|\[Init\]\[Env\]init env failed",
        "CANN's compiler of operators does not start: python packages that it imports are missing, CANN's files are of several versions, "
        "or the processor is not one that this CANN knows.",
        "python -c 'import numpy, decorator, sympy, cffi, yaml, scipy, psutil, attr, absl, cloudpickle'; ascend-graph doctor",
        "pip install numpy decorator sympy cffi pyyaml pathlib2 protobuf scipy requests psutil absl-py attrs cloudpickle",
    ),
    Known(
        "operator without a converter",
        r"torch\.ops\.(?P<operator>[\w.]+?)(?:\.default)? ge_converter is not implemented"
        r"|[Uu]nsupported (?:torch )?op(?:erator)?s?[^\n]*\b(?:by|in) (?:ge|GE|TorchAir|torchair)\b"
        r"|(?P<operator2>[\w:.]+) (?:has|is) no(?:t a)? (?:ge )?converter",
        "TorchAir has no converter for {operator}: a GE graph cannot have it.",
        "ascend-graph explain MODULE",
        'ascend_graph.register_op("OpType", eager=torch.ops.NAMESPACE.NAME)  # the converter follows from the prototype REG_OP(OpType)',
    ),
    Known(
        "graph without a kernel on the host",
        r"the host runtime has no kernel for GE operators? (?P<operator>\w+)",
        "The host runtime knows the graph and has no kernel of {operator}: on a device CANN has it.",
        "ascend_graph.host.lint.lint_graph(function, *arguments)  # all that a graph lacks, at once",
        "ascend_graph.host.package.build_operator_package(…)  # a kernel of your own in Python or C++",
    ),
    Known(
        "ranks that do not meet",
        r"\bEI000[46]\b|HCCL[^\n]*(?:time ?out|timed out)|wait socket (?:establish )?timeout",
        "The ranks of a collective did not all come to it within the time: one failed before (its message is the cause), works longer, "
        "or the network between them is closed.",
        "the first error in the logs of all ranks, by time",
        "export HCCL_CONNECT_TIMEOUT=1200 HCCL_EXEC_TIMEOUT=1800  # where one only works longer",
    ),
    Known(
        "torch_npu does not load",
        r"Failed to load the backend extension: torch_npu",
        "PyTorch imports torch_npu with itself, and that failed: the exception above this one says why.",
        "python -c 'import torch_npu'",
        "export TORCH_DEVICE_BACKEND_AUTOLOAD=0  # torch alone, without the NPU",
        is_general=True,
    ),
    Known(
        "library that is not there",
        r"(?P<library>lib[\w+.-]+?\.so[\w.]*): cannot open shared object file",
        "{library} is linked by something that is loaded, and lies in no directory that the loader searches.",
        "ldconfig -p | grep {library}; find / -name '{library}*' 2>/dev/null",
        'export LD_LIBRARY_PATH="DIRECTORY_OF_{library}:$LD_LIBRARY_PATH"  # or install the package that has it',
        is_general=True,
    ),
    Known(
        "call into CANN",
        r"\bERR\d{5} (?:PTA|GRAPH|DIST|OPS|PROF)?\s?call acl api failed|\bE[A-Z]9999\b",
        "A call into CANN failed; the lines after it are CANN's own, and the first of them says what.",
        "export ASCEND_SLOG_PRINT_TO_STDOUT=1 ASCEND_GLOBAL_LOG_LEVEL=3; the whole log: ~/ascend/log/debug/plog",
        "ascend-graph doctor --message -  # with those lines",
        is_general=True,
    ),
)

#: More of one log is repetition.
_MOST = 5
#: Characters of a line that are looked at.
_LONGEST = 4_000


class _Words(dict[str, str]):
    """The groups of a match; one that took no part is said in words."""

    def __missing__(self, key: str) -> str:
        return f"the {key}"


def diagnose(text: str, environment: Mapping[str, str]) -> list[Diagnosis]:
    """The known messages in a text, in their order; general ones only where nothing says more.

    Args:
        text: A message, a traceback, or a log.
        environment: The environment of the machine that is asked about the same.
    """
    text = _plain(text)
    found: dict[int, tuple[Known, re.Match[str]]] = {}
    for known in TABLE:
        match = re.search(known.pattern, text)
        # Of two entries for one place in the text the first is the particular one.
        if match is not None and not any(_overlap(match, other) for _, other in found.values()):
            found.setdefault(match.end(), (known, match))
    if any(not known.is_general for known, _ in found.values()):
        found = {at: (known, match) for at, (known, match) in found.items() if not known.is_general}
    return [_diagnosis(*found[at], text, environment) for at in sorted(found)][:_MOST]


def _plain(text: str) -> str:
    """A text without a terminal's colours, and with lines that have an end."""
    return "\n".join(line[:_LONGEST] for line in re.sub(r"\x1b\[[\d;]*m", "", text).splitlines())


def _overlap(a: re.Match[str], b: re.Match[str]) -> bool:
    return a.start() < b.end() and b.start() < a.end()


def _diagnosis(known: Known, match: re.Match[str], text: str, environment: Mapping[str, str]) -> Diagnosis:
    # An operator may be named by one of several groups: operator, operator2, …
    words = _Words()
    for name, value in match.groupdict().items():
        if value:
            words.setdefault(name.rstrip("0123456789"), value)
    try:
        here = tuple(known.here(match, environment)) if known.here is not None else ()
    except (AscendGraphError, OSError) as error:  # what this machine lacks is no reason not to answer
        here = (Finding("here", str(error)),)
    # The end of the match is where the message is: a pattern may begin with what stands before it on the line.
    line = text[text.rfind("\n", 0, match.end()) + 1 :].partition("\n")[0].strip()
    cause, look, mend = (part.format_map(words) for part in (known.cause, known.look, known.mend))
    return Diagnosis(known.name, line if len(line) <= 300 else f"{line[:297]}…", cause, look, mend, here)


def last_error(text: str) -> str:
    """The line of a text that says what went wrong, as far as that can be told."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\b[A-Z]\w*(?:Error|Exception)\b|\berror\b", line)]
    return (errors or lines or [""])[-1]


def without_answer(text: str) -> str:
    """What to do with a message that is not known."""
    return (
        f"not known: {last_error(text) or 'an empty text'}\n"
        "  This message is not among the known ones. The first error of the log is the one to give, not the last; "
        "`ascend-graph doctor` looks at the installation, `ascend-graph doctor MODULE` at its operators."
    )


def hint(error: BaseException) -> str | None:
    """Cause and mending of an error that is known; None for another."""
    found = diagnose(f"{type(error).__name__}: {error}", seen({}))
    return f"{found[0].cause}\n  → {found[0].mend}" if found else None
