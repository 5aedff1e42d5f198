"""What names say of a kernel that is to be launched: its operator, what its addresses are given, its launch function, a prototype.

All of it are first versions: the author's files from then on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ascend_graph.codegen.kernel_source import ELEMENT_TYPES, KernelFunction, KernelSources
from ascend_graph.codegen.rendering import GenerationError

from ascend_graph.binding.own_schema import OperatorSchema
from ascend_graph.shapes import Relation
from ascend_graph.shapes.syntax import Dims, Ellipsis_, Group, Name, Size

if TYPE_CHECKING:
    from ascend_graph.codegen.kernel_launch import KernelArgument, Operand

#: What an address can be given beside operands and tiling structures: memory of the launch, bytes, nothing.
SCRATCH, BYTES, NULL = "scratch", "bytes", "null"

#: Addresses that are no operands: memory of the launch, and what the host tells the kernel.
_SCRATCH_NAMES = re.compile("work?space|sync")
_DATA_NAMES = re.compile("tiling|param|config")
#: What the system itself needs of a workspace, on the processors that have most of it.
_SYSTEM_WORKSPACE = "16 << 20"
#: What sizes are called, in lower case and without underscores.
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
    """The kernel of an operator by its name; if there is one operator and one kernel, that one."""
    wanted = _plain(schema.prototype.op_type)
    found = [k for k in sources.kernels if _plain(k.name) == wanted]
    if not found and alone and len(sources.kernels) == 1:
        found = list(sources.kernels)
    return found[0] if found else None


def propose_declaration(schema: OperatorSchema, kernel: KernelFunction, sources: KernelSources) -> str:
    """``kernel(parameter: what, …)`` for a kernel's addresses.

    Operands are matched by name. Where that does not fit, they are taken in the order that operator packages prescribe:
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
            given[parameter.name] = _tiling_type(sources) or BYTES
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


def _tiling_type(sources: KernelSources) -> str | None:
    """The structure of tiling data in global memory: the one that kernels name, or the only one that is called so."""
    declared: str | None = sources.tiling_type
    if declared in sources.structs:
        return declared
    named = [name for name in sources.structs if "tiling" in name.lower()]
    return named[0] if len(named) == 1 else None


def _plain(name: str) -> str:
    plain = name.lower().replace("_", "")
    return plain.removesuffix("gm").removesuffix("addr") or plain


def launch_proposal(
    arguments: Sequence[KernelArgument], operands: Sequence[Operand], relation: Relation | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Statements of a launch function, and the members that only the author knows."""
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
    if type_ in ("float", "double", "bool"):
        return value if type_ != "float" else f"static_cast<float>({value})"
    return value if value.isdigit() or value == "launch.block_dim" else f"narrow<{type_}>({value})"


def _known_values(operands: Sequence[Operand], relation: Relation | None) -> dict[str, str]:
    """Expressions by plain name: lengths, blocks, tiles; then the relation's dimensions; then attrs, which count most."""
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
    """The named dimensions of a relation's inputs, and where each is."""
    for tensor in relation.input_tensors if relation else ():
        shape = tensor.alternatives[-1].shape
        if not isinstance(shape, Dims):
            continue
        open_at = next((n for n, item in enumerate(shape.items) if isinstance(item, Ellipsis_ | Group)), None)
        for n, item in enumerate(shape.items):
            if isinstance(item, Size) and isinstance(item.value, Name):
                yield item.value.id, (tensor.name, n if open_at is None or n < open_at else n - len(shape.items))


def proposed_prototypes(sources: KernelSources) -> str:
    """REG_OPs for kernels without a prototype.

    The addresses that are called outputs, otherwise the last one, are the outputs; floats and booleans are attrs.

    Raises:
        GenerationError: A kernel has less than two operands.
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
