"""The search for mirrors at 1, 2, 4 and 8 times a web: pages and links a second, memory, time a link.

The webs are atlases of linked pages without texts (`onionskin-bench web`): four pages in ten stand in mirrored collections of Zipf sizes, one page in thirty-three of a
mirror was rewritten and one link in fifty is gone. Every condition is run on every size.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import common


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, help="also write the results into this directory, as <date>-mirror_search.json")
    parser.add_argument("--pages", type=int, default=625_000, help="pages of the smallest web")
    parser.add_argument("--links", type=int, default=11, help="links a page, about")
    parser.add_argument("--memory", default="2G")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for times in [1, 2, 4, 8]:
            atlas = pathlib.Path(folder) / "atlas"
            shutil.rmtree(atlas, ignore_errors=True)
            web = common.measure(os.environ["ONIONSKIN_BENCH"], "web", options.pages * times, options.links, atlas)
            for merge in ["strict", "extended", "tolerant"]:
                arguments = ["collections", atlas, "--merge", merge, "--memory", options.memory, "--list", 1, "--json", "-q", "--no-url-rules"]
                command = [str(word) for word in [os.environ["ONIONSKIN"], *arguments]]
                found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[0])
                cpu = found["cpu_seconds"]
                rows.append(
                    {
                        "merge": merge,
                        "pages": web["pages"],
                        "links": web["links"],
                        "planted_collections": web["collections"],
                        "groups": found["groups"],
                        "replicas": found["replicas"],
                        "cpu_seconds": round(cpu, 2),
                        "seconds": round(found["seconds"], 2),
                        "pages_a_second": round(web["pages"] / cpu),
                        "links_a_second": round(web["links"] / cpu),
                        "nanoseconds_a_link": round(1e9 * cpu / web["links"]),
                        "peak_mb": round(found["peak_memory"] / 1e6),
                    }
                )
                print(json.dumps(rows[-1]), flush=True)
    for merge in ["strict", "extended", "tolerant"]:
        of = [row["nanoseconds_a_link"] for row in rows if row["merge"] == merge]
        print(f"{merge}: {of[0]} ns a link at 1x, {of[-1]} at 8x: {of[-1] / of[0]:.2f} times")
    if options.out:
        common.save(options.out, "mirror_search", {"memory": options.memory, "rows": rows})


if __name__ == "__main__":
    main()
