"""The command line of `onionskin.spark`, ready for spark-submit.

    spark-submit $(onionskin-spark --path) run s3a://crawl/warc/ -o s3a://crawl/atlas
    onionskin-spark run crawl/ -o atlas --master local[8]

Results go to standard output, what is being done to standard error; `--json` prints one object a line. Exit 0 done, 2 error.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any


def _arguments() -> argparse.ArgumentParser:
    import onionskin

    from onionskin.spark._scan import READING

    parser = argparse.ArgumentParser(
        prog="onionskin-spark", description="Find the copies in a web on Apache Spark: pages, near copies, mirrored collections."
    )
    parser.add_argument("--version", action="version", version=f"onionskin {onionskin.__version__}")
    parser.add_argument("--path", action="store_true", help="print the path of this program, for spark-submit, and end")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="print results as JSON, one object a line")
    common.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors on stderr")
    common.add_argument("--master", help="where Spark runs, as in local[8]; what spark-submit says is not changed")
    common.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark; may be repeated")
    common.add_argument("--no-resume", action="store_true", help="start over instead of going on where an earlier run was stopped")

    scanning = argparse.ArgumentParser(add_help=False)
    scanning.add_argument("inputs", nargs="+", metavar="INPUT", help="files and folders of WARC, JSON lines, Parquet, CSV, HTML")
    scanning.add_argument("-o", "--output", required=True, metavar="ATLAS", help="the folder of the atlas, anywhere Spark writes")
    scanning.add_argument("--recipe", default=None, help="what is computed from a text, as in w4-rabin64-6x14r2+sketch+w4")
    scanning.add_argument("--seed", type=int, default=1)
    scanning.add_argument("--text-field", default=READING["text_field"])
    scanning.add_argument("--id-field", default=READING["id_field"])
    scanning.add_argument("--url-field", default=READING["url_field"])
    scanning.add_argument("--html", action="store_true", help="the text field holds HTML")
    scanning.add_argument("--any-status", action="store_true", help="take HTTP responses of any status")
    scanning.add_argument("--format", default=None, help="read every input as this format")
    scanning.add_argument("--io", choices=["auto", "direct", "spark"], default="auto", help="who opens the inputs: executors themselves, or Spark")
    scanning.add_argument("--overwrite", action="store_true", help="replace an atlas that is there")
    scanning.add_argument("--max-bad-records", type=int, default=None, metavar="N", help="more bad records than this are an error")

    searching = argparse.ArgumentParser(add_help=False)
    searching.add_argument("--method", choices=["resemblance", "overlap", "exact"], default="resemblance")
    searching.add_argument("--threshold", type=_threshold, default=None, help="a resemblance as in 0.9 or 90%%, or a number of chunks")
    searching.add_argument("--chunking", default=None, help="the chunks that overlap counts")
    searching.add_argument("--preset", default=None, help="sgm98-4 or sgm98-2")
    searching.add_argument("--filter", type=_filter, default=None, metavar="KxSrR", help="candidates share r of k features of s minima")
    searching.add_argument("--exact", action="store_true", help="find every pair and miss none")
    searching.add_argument("--cluster", choices=["centred", "transitive"], default="centred")
    searching.add_argument("--keep", default="first", metavar="RULE", help="first, longest, most-linked, earliest, prefer:A,B,...")

    growing = argparse.ArgumentParser(add_help=False)
    growing.add_argument("--merge", choices=["strict", "extended", "tolerant"], default="tolerant")
    growing.add_argument("--any-site", action="store_true", help="replicas may stand on several sites")
    growing.add_argument("--trivial", choices=["transitive", "clusters"], default="transitive")
    growing.add_argument("--no-url-rules", action="store_true", help="do not learn rewritings of addresses")

    atlas = argparse.ArgumentParser(add_help=False)
    atlas.add_argument("atlas", metavar="ATLAS")
    commands.add_parser("run", parents=[common, scanning, searching, growing], help="scan, similar, collections")
    commands.add_parser("scan", parents=[common, scanning], help="read once")
    commands.add_parser("similar", parents=[common, atlas, searching], help="pairs and clusters")
    commands.add_parser("collections", parents=[common, atlas, growing], help="replicated collections")
    return parser


def _threshold(text: str) -> float:
    return float(text[:-1]) / 100 if text.endswith("%") else float(text)


def _filter(text: str) -> tuple[int, int, int]:
    import re

    found = re.fullmatch(r"(\d+)x(\d+)r(\d+)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is no filter: write k, s and r as in 6x14r2")
    k, s, r = (int(number) for number in found.groups())
    return k, s, r


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns what the process exits with."""
    parser = _arguments()
    given = parser.parse_args(arguments)
    if given.path:
        import os

        print(os.path.abspath(__file__))
        return 0
    if given.command is None:
        parser.print_help()
        return 2
    try:
        return _command(given)
    except Exception as error:
        # What Spark tells is long, and the trouble is in its first lines.
        told = str(error).strip().splitlines() or [type(error).__name__]
        print("error: " + "\n".join(told[:12]), file=sys.stderr)
        return 2


def _named(given: argparse.Namespace, names: str) -> dict[str, Any]:
    """What was given for arguments that have the same name in a function."""
    return {name: getattr(given, name) for name in names.split()}


def _command(given: argparse.Namespace) -> int:
    from pyspark.sql import SparkSession

    from onionskin import spark as job
    from onionskin.spark._files import Files

    builder = SparkSession.builder.appName("onionskin")
    if given.master:
        builder = builder.master(given.master)
    for setting in given.conf:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ValueError(f"{setting!r} is no setting: write key=value")
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    begun = time.monotonic()

    def progress(stage: str, step: str) -> None:
        if not given.quiet:
            print(f"{time.monotonic() - begun:8.1f} s  {stage}: {step}", file=sys.stderr, flush=True)

    resume = not given.no_resume
    summaries: list[job.Summary] = []
    if given.command in ("run", "scan"):
        scanned = job.scan(
            session,
            given.inputs,
            given.output,
            recipe=given.recipe or job.RECIPE,
            text_is_html=given.html,
            resume=resume,
            progress=progress,
            **_named(given, "seed text_field id_field url_field any_status format io overwrite max_bad_records"),
        )
        summaries.append(scanned)
    atlas = given.output if given.command in ("run", "scan") else given.atlas
    if given.command in ("run", "similar"):
        found = job.similar(
            session,
            atlas,
            resume=resume,
            progress=progress,
            **_named(given, "method threshold chunking preset filter exact cluster keep"),
        )
        summaries.append(found)
    if given.command == "collections" or (given.command == "run" and summaries[0].counts["links"]):
        grown = job.collections(
            session,
            atlas,
            url_rules=not given.no_url_rules,
            resume=resume,
            progress=progress,
            **_named(given, "merge any_site trivial"),
        )
        summaries.append(grown)
    for summary in summaries:
        if given.json:
            told: dict[str, Any] = {"type": summary.stage, "counts": dict(summary.counts), "resumed": list(summary.resumed)}
            print(json.dumps(told))
        else:
            print(summary)
    bad = sum(count for name, count in summaries[0].counts.items() if name.startswith("bad_records."))
    if bad and not given.quiet:
        print(f"{bad:,} bad records; which: bad_record_examples in the manifest of {atlas}", file=sys.stderr)
    if given.command == "run":
        Files(session, atlas).remove("_work")
    return 0


if __name__ == "__main__":
    sys.exit(main())
