"""Real documentation in real versions, laid out as hosts, and what `collections` makes of it.

Fetches packages by name with the clients of their registries (apt-get, pip, npm) and extracts the
HTML. The newest version gets a host of its own. Older versions get directories of mirror hosts, or
are beside the newest on the same host. Then it runs scan, similar and collections under the three
merge conditions, compares the results with what is known, and writes them as Markdown.

    ONIONSKIN=target/release/onionskin python bench/mirrors.py --work DIR [--out docs/mirrors.md]
"""

import argparse
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

# Name, client, folder of the documentation inside the package, whether versions stand on one host,
# (package, version) oldest first.
SETS = [
    ("clang", "apt", "usr/share/doc/clang-{v}/html", False, [(f"clang-{v}-doc", v) for v in ["13", "14", "16", "19"]]),
    ("llvm", "apt", "usr/share/doc/llvm-{v}-doc/html", False, [(f"llvm-{v}-doc", v) for v in ["13", "14", "16", "19"]]),
    ("boost", "apt", "usr/share/doc/libboost{v}-doc", False, [(f"libboost{v}-doc", v) for v in ["1.74", "1.81"]]),
    ("libstdcxx", "apt", "usr/share/doc/gcc-{v}-base/libstdc++", False, [(f"libstdc++-{v}-doc", v) for v in ["11", "12"]]),
    ("sqlalchemy", "pip", "doc", True, [("sqlalchemy", v) for v in ["1.3.24", "1.4.50"]]),
    ("alembic", "pip", "docs", False, [("alembic", v) for v in ["1.8.0", "1.13.0"]]),
    ("mako", "pip", "doc", False, [("mako", v) for v in ["1.1.6", "1.3.0"]]),
    ("dogpile", "pip", "docs", False, [("dogpile.cache", v) for v in ["1.1.0", "1.3.0"]]),
    ("vis", "npm", "docs", True, [("vis", v) for v in ["4.16.0", "4.21.0"]]),
    ("paper", "npm", "dist/docs", False, [("paper", v) for v in ["0.10.2", "0.12.0"]]),
]

# Where older versions stand, the next older in the next place.
MIRRORS = ["mirror.example.net/pub/{name}", "ftp.example.org/doc/{name}", "www.example.edu/~lib/{name}"]


def run(*command, cwd=None):
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    return done.stdout


def fetch(client, package, version, folder):
    """The archive of a package, fetched once."""
    folder.mkdir(parents=True, exist_ok=True)
    known = [path for path in folder.iterdir() if path.is_file()]
    if known:
        return known[0]
    if client == "apt":
        run("apt-get", "download", package, cwd=folder)
    elif client == "pip":
        # The source of this package only: what its build needs may come as wheels.
        run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", package, f"{package}=={version}", cwd=folder)
    else:
        run("npm", "pack", "--silent", f"{package}@{version}", cwd=folder)
    return next(path for path in folder.iterdir() if path.is_file())


def unpack(archive, folder):
    if folder.exists():
        return
    folder.mkdir(parents=True)
    if archive.suffix == ".deb":
        run("dpkg-deb", "-x", archive, folder)
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            # What is before the first slash is the package's own folder.
            _, _, inside = member.name.partition("/")
            if member.isfile() and inside and ".." not in inside.split("/"):
                path = folder / inside
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(tar.extractfile(member).read())


def html_pages(source):
    """HTML files of a folder: the name of each, without `.gz`, and its path."""
    for path in sorted(source.rglob("*")):
        name = str(path.relative_to(source)).removesuffix(".gz")
        if name.endswith((".html", ".htm")) and path.is_file() and not path.is_symlink():
            yield name, path


def page_bytes(path):
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


def lay_out(source, target):
    """Copies the HTML pages of a folder; returns how many."""
    pages = 0
    for name, path in html_pages(source):
        to = target / name
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(page_bytes(path))
        pages += 1
    return pages


def build(work):
    """Hosts as folders, and the truth beside them. Returns rows of (set, version, place, pages)."""
    hosts = work / "hosts"
    shutil.rmtree(hosts, ignore_errors=True)
    rows, facts = [], []
    for name, client, inside, one_host, versions in SETS:
        places = []
        for age, (package, version) in enumerate(reversed(versions)):
            unpacked = work / "unpacked" / name / version
            unpack(fetch(client, package, version, work / "fetched" / name / version), unpacked)
            if one_host:
                place = f"{name}.example.com/{version}"
            else:
                place = f"{name}.example.com" if age == 0 else MIRRORS[age - 1].format(name=name)
            pages = lay_out(unpacked / inside.format(v=version), hosts / place)
            rows.append((name, version, place, pages))
            places.append((place, pages))
        for place, pages in places[1:]:
            facts.append(
                {
                    "type": "mirror",
                    "target": f"http://{places[0][0]}/index.html",
                    "replica": f"http://{place}/index.html",
                    "kind": "skewed",
                    "same_host": one_host,
                    "pages": pages,
                }
            )
    truth = work / "truth.jsonl"
    truth.write_text("".join(json.dumps(fact) + "\n" for fact in facts))
    return hosts, truth, rows


def onionskin(*words):
    lines = run(os.environ["ONIONSKIN"], "-q", "--json", *words).splitlines()
    return [json.loads(line) for line in lines]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--threshold", default="0.7")
    options = parser.parse_args()
    hosts, truth, rows = build(options.work)
    atlas = options.work / "atlas"
    shutil.rmtree(atlas, ignore_errors=True)
    scan = onionskin("scan", hosts, "-o", atlas)[-1]
    similar = onionskin("similar", atlas, "--threshold", options.threshold)[-1]
    text = ["## Layout", "", "| Set | Version | Location | HTML pages |", "|---|---|---|---:|"]
    text += [f"| {name} | {version} | {place} | {pages:,} |" for name, version, place, pages in rows]
    text += ["", f"{scan['documents']:,} documents with {scan['links']:,} links between them. "
             f"At a resemblance of {options.threshold} there are {similar['clusters']:,} clusters",
             f"with {similar['clustered_documents']:,} documents.", ""]
    text += ["## Merge conditions compared", "",
             "| Merge condition | Collections | Under ten pages | Replicas | Problem collections "
             "| Whole mirrors |",
             "|---|---:|---:|---:|---:|---:|"]
    for merge in ["strict", "extended", "tolerant"]:
        found = onionskin("collections", atlas, "--merge", merge, "--list", "0", "--noise", "--check")
        score = onionskin("evaluate", atlas, "--truth", truth)[-1]
        summary = found[0]
        text.append(
            f"| {merge} | {summary['groups']:,} | {summary['noise_groups']:,} | {score['collections']:,} "
            f"| {score['problems']:,} | {score['mirrors_whole']} of {score['mirrors']} |"
        )
    text += ["", '"Replicas" counts the replicas of all collections. "Whole mirrors" are mirrors found whole.',
             "", "## Collections found with `tolerant`", "",
             "Collections of at least ten pages. Roots are shown without `index.html`."]
    for group in found:
        if group["type"] != "collection" or group["is_noise"]:
            continue
        text += ["", f"### {group['name']}", "", f"Kind: {group['kind']}.", "",
                 "| Root | Kind | Pages | Coverage | Changed | Added | Missing | Newer |",
                 "|---|---|---:|---:|---:|---:|---:|---|"]
        for replica in group["members"]:
            root = (replica["root_url"] or "").removeprefix("http://").removesuffix("index.html")
            text.append(
                f"| {root} | {replica['kind']} | {replica['pages']:,} | {replica['coverage']:.2f} "
                f"| {replica['changed']:,} | {replica['added']:,} | {replica['missing']:,} "
                f"| {replica['newer']} |"
            )
    text += ["", "## Mirrors that are not whole", ""]
    text += [f"- {root}: {why}" for root, why in score["misses"]] or ["- none"]
    print("\n".join(text))
    if options.out:
        before = options.out.read_text().split("<!-- measured -->")[0] if options.out.exists() else "# Real mirrors\n\n"
        options.out.write_text(before + "<!-- measured -->\n\n" + "\n".join(text) + "\n")


if __name__ == "__main__":
    main()
