"""Proposals for kernels by name: the operator, the sources of addresses, the launch function, a prototype.

All of them are first versions, which become the author's files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ascend_graph.codegen.kernels.source import ELEMENT_TYPES, KernelFunction, KernelSources
from ascend_graph.codegen.rendering import GenerationError

from ascend_graph.binding.generated_schema import OperatorSchema
from ascend_graph.shapes import Relation
from ascend_graph.shapes.syntax import DimensionGroup, Dims, Ellipsis_, Name, Size

if TYPE_CHECKING:
    from ascend_graph.codegen.kernels.launch_model import KernelArgument, LaunchOperand

#: Sources of an address besides operands and tiling structures: memory of the launch, bytes, nothing.
SCRATCH, BYTES, NULL = "scratch", "bytes", "null"

#: Addresses other than operands: memory of the launch, and data from the host.
_SCRATCH_NAMES = re.compile("work?space|sync")
_DATA_NAMES = re.compile("tiling|param|config")
#: Workspace size that the system itself needs, on the SoCs that need most.
_SYSTEM_WORKSPACE = "16 << 20"
#: Names of sizes, in lower case and without underscores.
_LENGTHS = frozenset(
    [
        "totallength",
        "totallen",
        "total",
        "totalnum",
        "totalelements",
        "totalelementnum",
        "length",
        "len",
        "numel",
        "count",
        "elementcount",
        "elementnum",
        "elements",
        "datalength",
        "datalen",
    ]
)
_BLOCKS = frozenset("blockdim blocknum blocks corenum cores usedcorenum numblocks".split())  # noqa: SIM905
_TILES = frozenset({"tilenum", "tiles"})


def find_kernel(schema: OperatorSchema, sources: KernelSources, *, alone: bool) -> KernelFunction | None:
    """Find the kernel of an operator by name; if there is one operator and one kernel, take that one."""
    wanted = _plain(schema.prototype.op_type)
    found = [k for k in sources.kernels if _plain(k.name) == wanted]
    if not found and alone and len(sources.kernels) == 1:
        found = list(sources.kernels)
    return found[0] if found else None


def propose_declaration(schema: OperatorSchema, kernel: KernelFunction, sources: KernelSources) -> str:
    """Propose the declaration ``kernel(parameter: source, …)`` for a kernel's addresses.

    Operands are matched by name. If names do not fit, they are taken in the order that operator packages prescribe:
    inputs, outputs, workspace, tiling.

    Raises:
        GenerationError: There are not as many addresses as operands.
    """
    operands = [p.name for p in (*schema.prototype.inputs, *schema.returns)]
    plain = {_plain(name): name for name in operands}
    given: dict[str, str] = {}
    rest = []
    for parameter in kernel.parameters:
        if not parameter.is_pointer:
            continue
        name = _plain(parameter.name)
        if name in plain:
            rest.append(parameter.name)
        elif _SCRATCH_NAMES.search(name):
            given[parameter.name] = SCRATCH
        elif _DATA_NAMES.search(name):
            given[parameter.name] = _tiling_type(sources, kernel) or BYTES
        else:
            rest.append(parameter.name)
    by_name = {name: plain[_plain(name)] for name in rest if _plain(name) in plain}
    if set(by_name.values()) == set(operands):
        given |= by_name | {name: BYTES for name in rest if name not in by_name}
    elif len(rest) == len(operands):
        given |= dict(zip(rest, operands, strict=True))
    else:
        raise GenerationError(
            f"the kernel {kernel} does not fit the operands {', '.join(operands)}: write what its addresses are given, "
            f"kernel = {kernel.name}({', '.join(f'{name}: …' for name in rest)}), below [{schema.prototype.op_type}]"
        )
    items = [f"{p.name}: {given[p.name]}" for p in kernel.parameters if p.name in given]
    return f"{kernel.name}({', '.join(i.partition(':')[0] if _same(i) else i for i in items)})"


def _same(item: str) -> bool:
    name, _, what = item.partition(": ")
    return name == what


def _tiling_type(sources: KernelSources, kernel: KernelFunction) -> str | None:
    """Return the structure of a kernel's tiling data, or None.

    It is the one that kernels name, or the only one named tiling: of the kernel's own files, or else of files that are no
    other kernel's.
    """
    declared: str | None = sources.tiling_type
    if declared in sources.structs:
        return declared
    own = [name for name in kernel.structs if "tiling" in name.lower()]
    others = {name for other in sources.kernels for name in other.structs}
    named = own or [name for name in sources.structs if "tiling" in name.lower() and name not in others]
    return named[0] if len(named) == 1 and named[0] in sources.structs else None


def _plain(name: str) -> str:
    plain = name.lower().replace("_", "")
    return plain.removesuffix("gm").removesuffix("addr") or plain


def launch_proposal(
    arguments: Sequence[KernelArgument], operands: Sequence[LaunchOperand], relation: Relation | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return statements of a launch function, and the members that only the author knows."""
    known = _known_values(operands, relation)
    statements, unknown = [], []
    for argument in arguments:
        if argument.role == "number":
            wanted = [(argument.name, argument.parameter.name, argument.parameter.number or "", None)]
        elif argument.struct is not None:
            wanted = [(f"{argument.name}.{f.name}", f.name, f.type, f.count) for f in argument.struct.fields]
        else:
            if argument.role == "scratch" and "space" in _plain(argument.name):
                statements.append(
                    f"launch.{argument.name}.bytes = {_SYSTEM_WORKSPACE};  // the system's own; add what the kernel uses"
                )
            elif argument.role in ("scratch", "data", "struct"):
                unknown.append(argument.name)
            continue
        for member, name, type_, count in wanted:
            value = None if count is not None else known.get(_plain(name))
            if value is None:
                unknown.append(member)
            else:
                statements.append(f"launch.{member} = {_converted(value, type_)};")
    return tuple(statements), tuple(unknown)


def _converted(value: str, type_: str) -> str:
    if type_ in ("double", "bool"):
        return value
    return value if value.isdigit() or value == "launch.block_dim" else f"narrow<{type_}>({value})"


def _known_values(operands: Sequence[LaunchOperand], relation: Relation | None) -> dict[str, str]:
    """Return expressions by plain name: lengths, blocks, tiles; overridden by dimensions, and these by attrs."""
    tensors = [o for o in operands if o.parameter is not None]
    counted = next((o for o in tensors if o.output is not None), tensors[0])
    known = dict.fromkeys(_LENGTHS, f"op.{counted.name}.numel()")
    known |= dict.fromkeys(_BLOCKS, "launch.block_dim")
    known |= dict.fromkeys(_TILES, "8")
    by_source = {o.source: o for o in tensors}
    for name, (source, position) in _dimensions(relation):
        if source in by_source:
            known[_plain(name)] = f"op.{by_source[source].name}.size({position})"
    known |= {_plain(o.source): f"op.{o.name}" for o in operands if o.type in ("int64_t", "double", "bool")}
    return known


def _dimensions(relation: Relation | None) -> Iterator[tuple[str, tuple[str, int]]]:
    """Yield the named dimensions of a relation's inputs, with the tensor and axis of each."""
    for tensor in relation.input_tensors if relation else ():
        shape = tensor.alternatives[-1].shape
        if not isinstance(shape, Dims):
            continue
        open_at = next((n for n, item in enumerate(shape.items) if isinstance(item, Ellipsis_ | DimensionGroup)), None)
        for n, item in enumerate(shape.items):
            if isinstance(item, Size) and isinstance(item.value, Name):
                yield item.value.id, (tensor.name, n if open_at is None or n < open_at else n - len(shape.items))


def proposed_prototypes(sources: KernelSources) -> str:
    """Return REG_OPs for kernels without a prototype.

    The addresses named as outputs, or else the last one, are the outputs; floats and booleans are attrs.

    Raises:
        GenerationError: A kernel has fewer than two operands.
    """
    texts = ['#include "graph/operator_reg.h"\n\nnamespace ge {']
    for kernel in sources.kernels:
        special = re.compile(f"{_SCRATCH_NAMES.pattern}|{_DATA_NAMES.pattern}")
        addresses = [p for p in kernel.parameters if p.is_pointer and not special.search(_plain(p.name))]
        outputs = [p for p in addresses if re.match("out|dst|result", p.name.lower())] or addresses[-1:]
        inputs = [p for p in addresses if p not in outputs]
        if not inputs:
            raise GenerationError(
                f"the kernel {kernel} does not show its operands; give its prototype too: --from op_proto.h --from {kernel.file.name}"
            )
        op_type = "".join(word[:1].upper() + word[1:] for word in kernel.name.split("_"))
        lines = [f"REG_OP({op_type})"]
        for call, parameters in (("INPUT", inputs), ("OUTPUT", outputs)):
            for parameter in parameters:
                dtype = ELEMENT_TYPES.get(kernel.elements.get(parameter.name, ""))
                types = "TensorType::ALL()" if dtype is None else f"TensorType({{{dtype.ge_name}}})"
                lines.append(f".{call}({parameter.name}, {types})")
        for parameter in kernel.parameters:
            if parameter.number in ("float", "double", "bool"):
                lines.append(f".REQUIRED_ATTR({parameter.name}, {'Bool' if parameter.number == 'bool' else 'Float'})")
        texts.append("\n    ".join([*lines, f".OP_END_FACTORY_REG({op_type});"]))
    return "\n".join([*texts, "}  // namespace ge\n"])
