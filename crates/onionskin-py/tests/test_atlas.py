"""Tables of an atlas, and pictures."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import datasets
import duckdb
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

import onionskin
from onionskin import Atlas


def test_every_table_is_as_its_files_say(mirrored: Path) -> None:
    atlas = Atlas(mirrored)
    assert {"documents", "pairs", "clusters", "collections"} <= set(atlas.tables)
    for name in atlas:
        table = atlas[name]
        read = table.to_arrow()
        files = pyarrow.concat_tables(pyarrow.parquet.read_table(file) for file in table.files) if table.files else None
        assert read.num_rows == table.num_rows == len(table)
        assert read.column_names == table.columns == list(table.schema)
        if files is not None:
            assert read.to_pylist() == files.select(table.columns).to_pylist(), name


def test_everybody_takes_a_table(mirrored: Path) -> None:
    pairs = Atlas(mirrored).pairs
    rows = list(pairs)
    assert pairs.to_arrow().to_pylist() == rows
    assert pairs.to_polars().to_dicts() == rows
    assert pairs.to_pandas().to_dict("records") == rows
    assert pairs.to_datasets().to_list() == rows
    assert polars.DataFrame(pairs).height == len(rows)
    assert pyarrow.RecordBatchReader.from_stream(pairs).read_all().num_rows == len(rows)
    assert isinstance(pairs.to_datasets(), datasets.Dataset) and isinstance(pairs.to_pandas(), pandas.DataFrame)
    assert pairs.to_duckdb().aggregate("count(*)").fetchall() == [(len(rows),)]
    with duckdb.connect() as connection:
        assert pairs.select("a").to_duckdb(connection).columns == ["a"]
        # By its name, as DuckDB finds data frames.
        assert connection.sql("select max(resemblance) from pairs").fetchall() == [(1.0,)]


def test_nothing_is_read_before_it_is_asked_for(mirrored: Path, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "atlas"
    shutil.copytree(mirrored, copy)
    table = Atlas(copy)["pairs"]
    for file in table.files:
        file.write_bytes(b"not Parquet any more, but nobody looks")
    assert table.num_rows > 0 and table.select("a").columns == ["a"]
    with pytest.raises(Exception, match="damaged"):
        table.to_arrow()
    with pytest.raises(ValueError, match="damaged"):
        next(iter(table))


def test_names_that_are_not_there(mirrored: Path) -> None:
    atlas = Atlas(mirrored)
    with pytest.raises(KeyError, match="has no table 'friends'; it has"):
        atlas["friends"]
    with pytest.raises(AttributeError, match="has no table 'friends'"):
        atlas.friends
    with pytest.raises(KeyError, match="no column \"z\"; it has a, b"):
        atlas.pairs.select("a", "z")
    with pytest.raises(KeyError, match="no cluster 999"):
        atlas.cluster(999)
    with pytest.raises(KeyError, match="no collection 999"):
        atlas.collection(999)
    with pytest.raises(KeyError, match="no document 999"):
        atlas.document(999)
    assert "pairs" in atlas and "friends" not in atlas and "pairs" in dir(atlas)
    assert atlas.recipe == onionskin.Recipe() and atlas.manifest["seed"] == 1


def test_a_cluster(mirrored: Path) -> None:
    atlas = Atlas(mirrored)
    rows = atlas.clusters.to_arrow().to_pylist()
    for id in {row["cluster"] for row in rows}:
        cluster = atlas.cluster(id)
        mine = [row for row in rows if row["cluster"] == id]
        assert [(m.doc, m.is_centre, m.resemblance, m.kind) for m in cluster] == [
            (row["doc"], row["is_centre"], row["resemblance_to_centre"], row["kind"]) for row in mine
        ]
        assert all(member.url == atlas.document(member.doc)["url"] for member in cluster)
        svg(cluster._repr_svg_())
        assert cluster.centre.name in cluster._repr_html_()


def test_a_collection(mirrored: Path) -> None:
    collection = Atlas(mirrored).collection(0)
    assert len(collection) == 4 and collection.slots == 14 and collection.principal.is_principal
    assert all(len(replica.pages) == 14 for replica in collection)
    drawn = svg(collection._repr_svg_())
    boxes = [box for box in drawn.iter("{http://www.w3.org/2000/svg}rect") if "page" in "".join(box.itertext())]
    assert len(boxes) == 4 * 14
    assert "mirror1.example.org" in collection._repr_html_()


def svg(text: str) -> ElementTree.Element:
    """Well-formed, with a name for those who do not see it, in the colours of the page, and without scripts."""
    root = ElementTree.fromstring(text)
    assert root.tag.endswith("svg") and root.get("role") == "img" and root.get("aria-label")
    assert "<script" not in text and "currentColor" in text and "white" not in text
    return root


def test_names_cannot_break_out_of_a_picture() -> None:
    evil = "http://x/\"'><script>alert(1)</script>&amp;"
    members = tuple(onionskin.Member(n, n == 0, 1.0 - n / 10, "near" if n else "exact", evil, None) for n in range(4))
    cluster = onionskin.Cluster(1, members)
    svg(cluster._repr_svg_())
    assert "<script" not in cluster._repr_html_()
    replica = onionskin.Replica(0, evil, "", "mirror", True, 1.0, 10, {0: 1}, {0: "copy"})
    collection = onionskin.Collection(1, evil, "mirror", evil, False, 1, 0, 0, (replica,))
    svg(collection._repr_svg_())
    assert "<script" not in collection._repr_html_()


def test_large_ones_are_drawn_in_part() -> None:
    members = tuple(onionskin.Member(n, n == 0, 1.0, "exact", None, None) for n in range(5000))
    text = onionskin.Cluster(1, members)._repr_html_()
    assert "4939 more are not drawn" in text and len(text) < 100_000
    replicas = tuple(onionskin.Replica(n, None, f"f{n}/", "mirror", n == 0, 1.0, 1, {s: s for s in range(1000)}, {}) for n in range(100))
    text = onionskin.Collection(1, "many", "mirror", "", False, 1000, 0, 0, replicas)._repr_html_()
    assert "60 more replicas and 880 more pages" in text and len(text) < 2_000_000
