"""Output of a picture as text, SVG, HTML and JSON. Node names are untrusted text and never become markup."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_graph.pictures.model import Node, Pair, PictureError, Row

#: Sizes of a picture, in pixels.
_BOX, _LINE, _GAP, _GUTTER, _HEAD = 430, 40, 8, 90, 60
_CHARACTERS = 62


@dataclass(frozen=True, slots=True)
class Picture:
    """Picture of the graphs made from a function, for printing or saving."""

    title: str
    pairs: tuple[Pair, ...]
    #: Reason why the graph cannot run; empty if it can.
    error: str = ""

    @property
    def missing(self) -> dict[str, list[str]]:
        """GE operators that the host runtime has no kernel for, and the names of their nodes."""
        missing: dict[str, list[str]] = {}
        for pair in self.pairs:
            for type_, names in pair.missing.items():
                missing.setdefault(type_, []).extend(names)
        return missing

    def as_dict(self) -> dict[str, Any]:
        """Return the graphs as JSON-compatible values."""
        return {"title": self.title, "error": self.error, "graphs": [pair.as_dict() for pair in self.pairs]}

    def __str__(self) -> str:
        return "\n\n".join(
            [*(_text(self.title, pair) for pair in self.pairs), *([_clean(self.error)] if self.error else [])]
        )

    def _repr_html_(self) -> str:
        return self.svg()

    def svg(self) -> str:
        """Return one SVG with the graphs below each other."""
        from jinja2 import Environment

        drawings = [_drawn(pair) for pair in self.pairs]
        top = _HEAD
        for drawing in drawings:
            drawing["top"] = top
            top += drawing["height"] + _HEAD
        width = 2 * (_BOX + _GUTTER) + 3 * _GAP
        template = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(_SVG)
        return template.render(
            title=_clean(self.title), error=_clean(self.error), drawings=drawings, width=width, height=top
        )

    def html(self) -> str:
        """Return a self-contained HTML page with the graphs; it highlights related nodes under the pointer."""
        from jinja2 import Environment
        from markupsafe import Markup

        template = Environment(autoescape=True).from_string(_HTML)
        return template.render(title=_clean(self.title), svg=Markup(self.svg()))

    def save(self, path: str | Path) -> Path:
        """Write the picture as ``.html``, ``.svg``, ``.txt`` or ``.json``, by the suffix of the path.

        Raises:
            PictureError: The suffix is another one, or the file cannot be written.
        """
        path = Path(path)
        forms: dict[str, Callable[[], str]] = {
            ".html": self.html,
            ".svg": self.svg,
            ".txt": lambda: str(self) + "\n",
            ".json": lambda: json.dumps(self.as_dict(), indent=2) + "\n",
        }
        if path.suffix not in forms:
            raise PictureError(f"{path}: expected a file that ends in {', '.join(forms)}")
        try:
            path.write_text(forms[path.suffix](), encoding="utf-8", errors="replace")
        except OSError as error:
            raise PictureError(f"{path} cannot be written: {error.strerror or error}. Name another file") from None
        return path


# ------------------------------------------------------------------------------------------------------------------- text


def _text(title: str, pair: Pair) -> str:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
    for heading in ("FX", "gives", "GE", "gives", "µs"):
        table.add_column(heading, overflow="fold", justify="right" if heading == "µs" else "left")
    for row in pair.rows():
        fx = row.fx
        left = ["", ""] if fx is None else [_call(fx), ", ".join(fx.outputs)]
        for number in range(max(1, len(row.ge))):
            node = row.ge[number] if row.ge else None
            right = ["", "", ""] if node is None else [_call(node) + _lack(node), ", ".join(node.outputs), _time(node)]
            table.add_row(*(Text(_clean(cell)) for cell in (*(left if number == 0 else ["", ""]), *right)))
        if fx is not None and fx.source:
            table.add_row(Text(_clean(f"    {fx.source}  ({fx.place})"), style="dim"))
    console = Console(width=200, no_color=True, legacy_windows=False)
    with console.capture() as captured:
        console.print(Text(_clean(f"{title}, {pair.title}: {len(pair.fx)} nodes of FX, {len(pair.ge)} of GE")))
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def _call(node: Node) -> str:
    name = "" if node.name == node.type else f"{node.name} = "
    return f"{name}{node.type}({', '.join(node.inputs)})"


def _lack(node: Node) -> str:
    return "  !! no kernel on the host" if node.is_missing else ""


def _time(node: Node) -> str:
    return "" if node.microseconds is None else f"{node.microseconds:.0f}"


def _clean(text: str) -> str:
    """Replace characters that are not printable, which a terminal or XML could misinterpret."""
    return "".join(c if c.isprintable() else "�" for c in text)


# ------------------------------------------------------------------------------------------------------------------ drawn


def _drawn(pair: Pair) -> dict[str, Any]:
    """Return the positions of boxes and edges: a row for each FX node, with its GE nodes next to it."""
    boxes: list[dict[str, Any]] = []
    places: dict[tuple[str, str], tuple[int, int]] = {}
    rows = list(pair.rows())
    y = 0
    for row in rows:
        for side, nodes in (("fx", [row.fx] if row.fx is not None else []), ("ge", list(row.ge))):
            x = _GUTTER if side == "fx" else _GUTTER + _BOX + 3 * _GAP
            for number, node in enumerate(nodes):
                at = y + number * (_LINE + _GAP)
                places[side, node.name] = (x, at)
                boxes.append(_box(side, node, row, x, at))
        y += max(1, len(row.ge)) * (_LINE + _GAP)
    edges = [edge for side, graph in (("fx", pair.fx), ("ge", pair.ge)) for edge in _edges(side, graph.nodes, places)]
    counts = f"{len(pair.fx)} nodes of FX, {len(pair.ge)} of GE"
    return {
        "title": _clean(pair.title),
        "counts": counts,
        "boxes": boxes,
        "edges": edges,
        "height": y,
        "left": _GUTTER,
        "right": _GUTTER + _BOX + 3 * _GAP,
    }


def _box(side: str, node: Node, row: Row, x: int, y: int) -> dict[str, Any]:
    time = "" if node.microseconds is None else f"{node.microseconds:.0f} µs"
    place = f"{Path(node.place).name}" if node.place else ""
    below = "   ".join(
        filter(None, [", ".join(node.outputs), time, "no kernel on the host" if node.is_missing else "", place])
    )
    whole = [_call(node), *node.outputs, time, node.source, node.place]
    return {
        "x": x, "y": y, "side": side, "row": _clean(row.fx.name if row.fx is not None else node.name),
        "name": _short(_clean(_call(node))), "below": _short(_clean(below)),
        "whole": "\n".join(_clean(line) for line in whole if line), "is_missing": node.is_missing,
    }  # fmt: skip


def _short(text: str) -> str:
    return text if len(text) <= _CHARACTERS else f"{text[: _CHARACTERS - 1]}…"


def _edges(
    side: str, nodes: Sequence[Node], places: dict[tuple[str, str], tuple[int, int]]
) -> Iterator[dict[str, Any]]:
    """Yield each edge as a curve next to the boxes, FX's on the left and GE's on the right; long edges bend wider."""
    for node in nodes:
        for name in node.inputs:
            if (side, name) not in places or (side, node.name) not in places:
                continue
            (x, start), (_, end) = places[side, name], places[side, node.name]
            far = min(abs(end - start) / 4 + 12, _GUTTER - 6)
            edge, bend = (x, x - far) if side == "fx" else (x + _BOX, x + _BOX + far)
            first, last = start + _LINE * 0.66, end + _LINE * 0.33
            yield {
                "path": f"M{edge} {first:.0f}C{bend:.0f} {first:.0f} {bend:.0f} {last:.0f} {edge} {last:.0f}",
                "side": side,
            }


_SVG = """<svg xmlns="http://www.w3.org/2000/svg" width="{{ width }}" height="{{ height }}" viewBox="0 0 {{ width }} {{ height }}" font-family="monospace" font-size="11">
<title>{{ title }}</title>
<style>rect{fill:#fff;stroke:#888}.ge rect{fill:#eef6ff}.missing rect{fill:#ffe3e0;stroke:#c22}path{fill:none;stroke:#999}.below{fill:#555}.lit rect{stroke:#06c;stroke-width:2}</style>
<rect width="100%" height="100%" style="fill:#fafafa;stroke:none"/>
<text x="8" y="18" font-size="14">{{ title }}{% if error %} — {{ error }}{% endif %}</text>
{% for drawing in drawings %}
<g transform="translate(0 {{ drawing.top }})">
<text x="8" y="-28" font-size="12">{{ drawing.title }}: {{ drawing.counts }}</text>
<text x="{{ drawing.left }}" y="-8">FX</text><text x="{{ drawing.right }}" y="-8">GE</text>
{% for edge in drawing.edges %}
<path d="{{ edge.path }}"/>
{% endfor %}
{% for box in drawing.boxes %}
<g class="{{ box.side }}{% if box.is_missing %} missing{% endif %}" data-row="{{ box.row }}" transform="translate({{ box.x }} {{ box.y }})">
<title>{{ box.whole }}</title>
<rect width="430" height="40" rx="4"/>
<text x="8" y="16">{{ box.name }}</text><text class="below" x="8" y="32">{{ box.below }}</text>
</g>
{% endfor %}
</g>
{% endfor %}
</svg>
"""

_HTML = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{{ title }}</title>
<style>body{margin:0}</style>
{{ svg }}
<script>
for (const box of document.querySelectorAll("[data-row]")) {
  const mates = () => [...box.parentNode.querySelectorAll("[data-row]")].filter(other => other.dataset.row === box.dataset.row);
  box.addEventListener("mouseenter", () => mates().forEach(other => other.classList.add("lit")));
  box.addEventListener("mouseleave", () => mates().forEach(other => other.classList.remove("lit")));
}
</script>
</html>
"""
