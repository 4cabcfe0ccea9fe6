"""Atlases with tables that somebody made up: one value each, and a manifest that agrees.

No command may abort, hang or take memory by such a value. `verify --deep` reads every row and has to find it.
"""

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq

from . import suite
from .flips import ATLAS, TIMEOUT, Flips
from .program import MIB

# Columns that count as ids: documents, sites, clusters and collections.
IDS = ("doc", "site", "src", "dest", "a", "b", "cluster", "centre", "original", "group", "replica", "slot")
VALUES = (-1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 62, -(1 << 63))
# Ways to spoil a table without a value.
ORDERS = ("backwards", "doubled", "halved", "empty")
# Values by which vectors were once sized.
ABORTED = [
    (table, column, value)
    for table, column in (("documents", "site"), ("clusters", "cluster"), ("sites", "site"))
    for value in (1 << 31, (1 << 32) - 1)
]
# Tables in which a row is not there twice.
UNIQUE = (
    "documents",
    "sites",
    "sketches",
    "features",
    "pairs",
    "clusters",
    "cluster_stats",
    "collection_groups",
)
# No small atlas is worth more, whatever its numbers say.
MOST_MEMORY = 1024 * MIB


class Crafted(Flips):
    name = "crafted"
    small, large, share = 12, 300, 3

    def prepare(self):
        self.make_sound()
        self.cases = []
        manifest = json.loads((self.sound / "atlas/manifest.json").read_text())
        for table in sorted(manifest["tables"]):
            for file in manifest["tables"][table]["files"][:1]:
                columns = pq.read_schema(self.sound / "atlas" / file["path"])
                for field in columns:
                    if pa.types.is_int64(field.type):
                        self.cases += [(table, file["path"], field.name, value) for value in VALUES]
                self.cases += [(table, file["path"], None, order) for order in ORDERS]
        # The small run sees tables of all kinds, after those that have aborted commands before.
        self.random("order").shuffle(self.cases)
        self.cases.sort(key=lambda case: (case[0], case[2], case[3]) not in ABORTED)

    def case(self, number, folder):
        table, path, column, value = self.cases[number % len(self.cases)]
        rng = self.random(number)
        verdict = suite.Verdict(f"{table}.{column} = {value}" if column else f"{table} {value}")
        verdict.counts["atlases"] += 1
        crafted = spoiled(pq.read_table(self.sound / "atlas" / path), column, value, rng)
        self._craft(folder, table, path, crafted)
        for asked in ATLAS:
            verdict.counts["commands"] += 1
            outcome = self.workshop.run(
                *self._arguments(asked.arguments), folder=folder, timeout=TIMEOUT, most_memory=MOST_MEMORY
            )
            if trouble := outcome.trouble():
                verdict.problems.append(f"`{outcome.command()}`: {trouble}")
            elif outcome.code == 2 and not outcome.stderr.strip():
                verdict.problems.append(f"`{outcome.command()}` fails without a word")
            if "--deep" in asked.arguments and is_wrong(table, column, value, crafted):
                verdict.expect(outcome.code == 1, f"`{outcome.command()}` finds nothing wrong")
            if asked.writes or asked.then:
                self._craft(folder, table, path, crafted)
        return verdict

    def _craft(self, folder, table, path, crafted):
        """Sound files, with the crafted table and a manifest that agrees with it."""
        suite.empty(folder)
        self._place(folder)
        atlas = folder / "atlas"
        (atlas / path).unlink()
        pq.write_table(crafted, atlas / path)
        manifest = json.loads((atlas / "manifest.json").read_text())
        # Without a checksum of its own it is one of an older version.
        manifest.pop("checksum", None)
        file = next(file for file in manifest["tables"][table]["files"] if file["path"] == path)
        manifest["tables"][table]["rows"] += len(crafted) - file["rows"]
        file |= {"rows": len(crafted), "bytes": (atlas / path).stat().st_size, "xxh3": "0" * 16}
        (atlas / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
        # `verify` says which checksum the file has.
        said = self.workshop.run("verify", "atlas", "--json", folder=folder).stdout.decode()
        if found := re.search(r"checksum ([0-9a-f]{16})", said):
            file["xxh3"] = found[1]
            (atlas / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")


def is_wrong(table, column, value, crafted):
    """Whether ids, their order or what refers to the table give it away."""
    if column:
        return column in IDS and len(crafted) > 0
    match value:
        case "backwards":
            return len(crafted) > 1
        case "doubled":
            return table in UNIQUE and len(crafted) > 0
        case "halved" | "empty":
            return table == "documents"
    return False


def spoiled(table, column, value, rng):
    """A table with one other value, or in another order."""
    if column is None:
        rows = list(range(len(table)))
        match value:
            case "backwards":
                # Of one row and of equal rows there is no other order.
                rows.reverse()
            case "doubled":
                rows = [row for row in rows for _ in range(2)]
            case "halved":
                rows = rows[: len(rows) // 2]
            case "empty":
                rows = []
        return table.take(pa.array(rows, pa.int64()))
    at = table.schema.get_field_index(column)
    values = table.column(column).to_pylist()
    if not values:
        return table
    values[rng.choice([0, len(values) // 2, len(values) - 1])] = value
    field = table.schema.field(at)
    return table.set_column(at, field, pa.array(values, field.type))
