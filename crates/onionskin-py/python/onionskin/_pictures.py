"""Pictures for notebooks: SVG without scripts, in the colours of the page, light or dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._atlas import Cluster, Collection
    from ._summaries import Explanation

# Told apart without seeing red and green, in grey, on light and on dark (after Okabe and Ito).
_BLUE, _ORANGE, _GREEN, _GREY = "#0072b2", "#d55e00", "#009e73", "#7f7f7f"
_FONT = "font-family='system-ui, sans-serif' fill='currentColor'"
_MEMBERS = 60
_COLUMNS = 120
_REPLICAS = 40


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _svg(width: float, height: float, label: str, body: Sequence[str]) -> str:
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:.0f} {height:.0f}' width='{width:.0f}' height='{height:.0f}' "
        f"role='img' aria-label='{escape(label, quote=True)}' style='max-width:100%;height:auto'>"
        f"<title>{escape(label)}</title>{''.join(body)}</svg>"
    )


def cluster(of: Cluster) -> str:
    """The centre, and around it the others, the further away the less they resemble it."""
    others = sorted((member for member in of.members if not member.is_centre), key=lambda member: (-member.resemblance, member.doc))
    shown, hidden = others[:_MEMBERS], max(0, len(others) - _MEMBERS)
    width, height = 640.0, 440.0
    x, y, near, far = width / 2, height / 2 + 10, 60.0, 165.0
    lowest = min((member.resemblance for member in shown), default=1.0)
    scale = max(1.0 - lowest, 1e-9)
    label = f"Cluster {of.id}: {len(of)} documents around {of.centre.name}"
    body = []
    for radius, value in ((near, 1.0), (far, lowest)):
        if shown and (value == 1.0 or lowest < 1.0):
            body.append(f"<circle cx='{x}' cy='{y}' r='{radius}' fill='none' stroke='currentColor' stroke-opacity='.2' stroke-dasharray='3 4'/>")
            body.append(f"<text x='{x}' y='{y - radius - 4}' font-size='11' text-anchor='middle' opacity='.7' {_FONT}>{value:.2f}</text>")
    spokes, dots, names = [], [], []
    for nth, member in enumerate(shown):
        angle = 2 * math.pi * (nth + 0.5) / len(shown) - math.pi / 2
        radius = near + (far - near) * (1.0 - member.resemblance) / scale if lowest < 1.0 else near
        at_x, at_y = x + radius * math.cos(angle), y + radius * math.sin(angle)
        exact = member.kind == "exact"
        colour = _BLUE if exact else _ORANGE
        tip = f"<title>{escape(member.name)}: {member.kind} copy, resemblance {member.resemblance:.3f}</title>"
        spokes.append(
            f"<line x1='{x:.1f}' y1='{y:.1f}' x2='{at_x:.1f}' y2='{at_y:.1f}' stroke='currentColor' stroke-opacity='.35' "
            f"stroke-width='{0.6 + 1.8 * member.resemblance:.2f}'/>"
        )
        if exact:
            dots.append(f"<rect x='{at_x - 5.5:.1f}' y='{at_y - 5.5:.1f}' width='11' height='11' rx='2' fill='{colour}'>{tip}</rect>")
        else:
            dots.append(f"<circle cx='{at_x:.1f}' cy='{at_y:.1f}' r='6' fill='{colour}'>{tip}</circle>")
        if len(shown) <= 12:
            right = math.cos(angle) >= 0
            anchor = "start" if right else "end"
            room = (width - at_x if right else at_x) - 14
            text = _short(member.name.removeprefix("https://").removeprefix("http://"), max(6, int(room / 6.8)))
            names.append(
                f"<text x='{at_x + (10 if right else -10):.1f}' y='{at_y + 4:.1f}' font-size='11' text-anchor='{anchor}' {_FONT}>{escape(text)}</text>"
            )
    centre = f"<circle cx='{x}' cy='{y}' r='11' fill='{_GREEN}'><title>{escape(of.centre.name)}: the centre</title></circle>"
    legend = (
        f"<g font-size='12' {_FONT}><circle cx='16' cy='{height - 16}' r='7' fill='{_GREEN}'/><text x='28' y='{height - 12}'>centre</text>"
        f"<rect x='86' y='{height - 21}' width='11' height='11' rx='2' fill='{_BLUE}'/><text x='102' y='{height - 12}'>exact copy</text>"
        f"<circle cx='182' cy='{height - 16}' r='6' fill='{_ORANGE}'/><text x='193' y='{height - 12}'>near copy</text>"
        + (f"<text x='{width - 8}' y='{height - 12}' text-anchor='end'>{hidden} more are not drawn</text>" if hidden else "")
        + "</g>"
    )
    # Beside the centre the name would lie across what leads to the others.
    around = escape(_short(of.centre.name.removeprefix("https://").removeprefix("http://"), 90))
    title = (
        f"<text x='8' y='18' font-size='14' font-weight='600' {_FONT}>Cluster {of.id}: {len(of)} documents</text>"
        f"<text x='8' y='34' font-size='11' {_FONT}>around {around}</text>"
    )
    return _svg(width, height, label, [title, *body, *spokes, *dots, centre, *names, legend])


def _page(picture: str, head: Sequence[str], rows: Sequence[Sequence[str]], more: int) -> str:
    cells = "".join(f"<th style='text-align:left;padding:2px 10px 2px 0'>{escape(name)}</th>" for name in head)
    lines = "".join(
        "<tr>" + "".join(f"<td style='text-align:left;padding:2px 10px 2px 0'>{cell}</td>" for cell in row) + "</tr>" for row in rows
    )
    rest = f"<p>{more} more</p>" if more > 0 else ""
    return f"<div>{picture}<details><summary>as a table</summary><table><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table>{rest}</details></div>"


def cluster_page(of: Cluster) -> str:
    """The picture, and the documents as a table behind it."""
    rows = [
        [str(member.doc), "centre" if member.is_centre else member.kind, f"{member.resemblance:.3f}", escape(member.name)]
        for member in of.members[:50]
    ]
    return _page(cluster(of), ["doc", "kind", "resemblance", "document"], rows, len(of) - 50)


def collection(of: Collection) -> str:
    """A row a replica, a column a page that copies have in common."""
    slots = sorted({slot for replica in of.replicas for slot in replica.pages})
    # Pages that more copies have stand further left, so that gaps are seen as such.
    standing = {slot: sum(slot in replica.pages for replica in of.replicas) for slot in slots}
    slots.sort(key=lambda slot: (-standing[slot], slot))
    columns, replicas = slots[:_COLUMNS], of.replicas[:_REPLICAS]
    left, cell, gap, top = 230.0, 14.0 if len(columns) <= 28 else max(3.4, 400.0 / len(columns)), 1.0, 34.0
    row = 18.0
    width, height = max(left + cell * len(columns) + 12, 520.0), top + row * len(replicas) + 34
    label = f"Collection {of.id}, {of.name}: {len(of.replicas)} replicas of {of.slots} pages"
    colours = {"copy": _BLUE, "exact": _BLUE, "changed": _ORANGE, "added": _GREEN, "virtual": _GREY}
    seen_roles: list[str] = []
    body = [f"<text x='8' y='20' font-size='14' font-weight='600' {_FONT}>{escape(_short(f'{of.name} ({of.kind})', 70))}</text>"]
    for nth, replica in enumerate(replicas):
        at = top + row * nth
        name = _short(replica.name.removeprefix("https://").removeprefix("http://"), 34)
        weight = "600" if replica.is_principal else "400"
        body.append(
            f"<text x='{left - 8}' y='{at + 12:.1f}' font-size='12' font-weight='{weight}' text-anchor='end' {_FONT}>{escape(name)}"
            f"<title>{escape(replica.name)}: {replica.kind}, has {100 * replica.coverage:.0f} % of the principal</title></text>"
        )
        for column, slot in enumerate(columns):
            here = left + cell * column
            box = f"x='{here:.1f}' y='{at + 1:.1f}' width='{max(cell - gap, 1):.1f}' height='{row - 3:.1f}'"
            if slot in replica.pages:
                role = replica.roles.get(slot, "copy")
                if role not in seen_roles:
                    seen_roles.append(role)
                colour = colours.get(role, _BLUE)
                body.append(f"<rect {box} fill='{colour}'><title>page {slot}, doc {replica.pages[slot]}: {escape(role)}</title></rect>")
            else:
                body.append(f"<rect {box} fill='none' stroke='currentColor' stroke-opacity='.25' stroke-width='.6'><title>page {slot}: missing</title></rect>")
    at, here = height - 12, 8.0
    for role in seen_roles:
        body.append(f"<rect x='{here}' y='{at - 10}' width='11' height='11' fill='{colours.get(role, _BLUE)}'/>")
        body.append(f"<text x='{here + 16}' y='{at}' font-size='12' {_FONT}>{escape(role)}</text>")
        here += 30 + 7.0 * len(role)
    body.append(f"<rect x='{here}' y='{at - 10}' width='11' height='11' fill='none' stroke='currentColor' stroke-opacity='.4'/>")
    body.append(f"<text x='{here + 16}' y='{at}' font-size='12' {_FONT}>missing</text>")
    hidden = []
    if len(of.replicas) > len(replicas):
        hidden.append(f"{len(of.replicas) - len(replicas)} more replicas")
    if len(slots) > len(columns):
        hidden.append(f"{len(slots) - len(columns)} more pages")
    if hidden:
        body.append(f"<text x='{width - 8}' y='{at}' font-size='12' text-anchor='end' {_FONT}>{' and '.join(hidden)}</text>")
    return _svg(width, height, label, body)


def collection_page(of: Collection) -> str:
    """The picture, and the replicas as a table behind it."""
    rows = [
        [str(replica.number), escape(replica.kind), str(len(replica.pages)), f"{100 * replica.coverage:.0f} %", escape(replica.name)]
        for replica in of.replicas[:50]
    ]
    return _page(collection(of), ["replica", "kind", "pages", "of the principal", "where"], rows, len(of.replicas) - 50)


def table(name: str, num_rows: int, schema: dict[str, str], rows: Sequence[dict[str, Any]]) -> str:
    """The first rows of a table."""
    head = "".join(f"<th title='{escape(kind, quote=True)}'>{escape(column)}</th>" for column, kind in schema.items())
    lines = "".join("<tr>" + "".join(f"<td>{escape(_short(str(value), 60))}</td>" for value in row.values()) + "</tr>" for row in rows)
    words = f"{escape(name)}: {num_rows:,} rows" + (f", the first {len(rows)}" if num_rows > len(rows) else "")
    return f"<div><p>{words}</p><table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>"


# : Letters of a text that are shown.
_LETTERS = 20_000


def _marked(stretches: Sequence[tuple[str, bool]]) -> str:
    out, left = [], _LETTERS
    for text, shared in stretches:
        if left <= 0:
            out.append(" …")
            break
        shown = escape(_short(text, left))
        left -= len(text)
        # What differs is marked, by a line as well as by colour.
        out.append(shown if shared else f"<mark style='background:{_ORANGE}33;color:inherit;text-decoration:underline'>{shown}</mark>")
    return "".join(out)


def explanation(of: Explanation) -> str:
    """Both texts side by side; what one has alone is marked."""
    rows = "".join(
        f"<tr><td>{escape(one.chunking)}</td><td>{one.shared} of {one.size_a} and {one.size_b}</td><td>{one.resemblance:.3f}</td>"
        f"<td>{one.containment_a:.3f}</td><td>{one.containment_b:.3f}</td></tr>"
        for one in of.overlaps
    )
    head = "<tr><th>chunks</th><th>shared</th><th>resemblance</th><th>of the first</th><th>of the second</th></tr>"
    if of.texts is None:
        texts = f"<p>The texts cannot be shown: {escape(of.text_problem or 'no reason is known')}</p>"
    else:
        cell = "width:50%;vertical-align:top;text-align:left;white-space:pre-wrap;overflow-wrap:anywhere;padding:6px 12px 6px 0"
        texts = (
            f"<table style='width:100%;table-layout:fixed'><thead><tr><th style='{cell}'>{escape(of.a.name)}</th><th style='{cell}'>{escape(of.b.name)}</th></tr></thead>"
            f"<tbody><tr><td style='{cell}'>{_marked(of.texts.stretches_a)}</td><td style='{cell}'>{_marked(of.texts.stretches_b)}</td></tr></tbody></table>"
        )
    return f"<div><table><thead>{head}</thead><tbody>{rows}</tbody></table>{texts}</div>"
