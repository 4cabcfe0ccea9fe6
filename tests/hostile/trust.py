"""Eleven ways to have a famous site put on an avoid list by copying it."""

import json

from . import suite
from .payloads import page, response
from .webs import words

FAMOUS, ATTACKER = "famous.org", "attacker.com"
OLD, NEW = "2010-03-04T05:06:07Z", "2024-03-04T05:06:07Z"


class Web:
    """Pages as they are crawled, in the order of the input."""

    def __init__(self, rng):
        self.rng = rng
        self.records = []

    def site(self, root, pages, *, date=OLD, canonical=None, texts=None, more=0):
        """A site of linked pages below a root like `famous.org/wiki/`. Returns its texts, for a copy of it."""
        texts = texts or [words(self.rng, 120) for _ in range(pages)]
        own = [words(self.rng, 120) for _ in range(more)]
        for number, text in enumerate(texts + own):
            links = "".join(
                f'<a href="http://{root}p{at}.html">{at}</a>'
                for at in range(len(texts + own))
                if at != number
            )
            name = "" if number == 0 else f"p{number}.html"
            named = f'<link rel="canonical" href="http://{canonical}{name}">' if canonical else ""
            body = f"<html><head><title>Page {number}</title>{named}</head><body><p>{text}</p>{links}</body></html>"
            if number:
                body = body.replace("</body>", f'<a href="http://{root}">home</a></body>')
            self.records.append(response(f"http://{root}{name}", body, date))
        return texts

    def voters(self, hosts, target, *, pages=1, date=OLD):
        """Hosts of their own text that link to the root page of a site."""
        for host in hosts:
            for number in range(pages):
                body = page(words(self.rng, 80)).replace(
                    "</body>", f'<a href="http://{target}">see</a></body>'
                )
                self.records.append(response(f"http://{host}/{number or ''}", body, date))


def independent(count):
    return [f"site{number}.example-{number}.net" for number in range(count)]


def honest(web):
    """100 independent sites link to the original, none to the mirror."""
    texts = web.site(f"{FAMOUS}/", 30)
    web.site(f"{ATTACKER}/", 30, texts=texts, date=NEW)
    web.voters(independent(100), f"{FAMOUS}/")


def one_farm(web):
    """One host with 150 pages links to the attacker."""
    texts = web.site(f"{FAMOUS}/", 30)
    web.site(f"{ATTACKER}/", 30, texts=texts, date=NEW)
    web.voters(independent(3), f"{FAMOUS}/")
    web.voters(["www.farm.net"], f"{ATTACKER}/", pages=150, date=NEW)


def larger(web):
    """The attacker has 15 % more pages; 100 sites link to the original."""
    texts = web.site(f"{FAMOUS}/", 40)
    web.site(f"{ATTACKER}/", 40, texts=texts, more=6, date=NEW)
    web.voters(independent(100), f"{FAMOUS}/")


def subdomains_of_a_farm(web):
    """100 sites link to the original, 101 subdomains of one farm to the attacker."""
    texts = web.site(f"{FAMOUS}/", 30)
    web.site(f"{ATTACKER}/", 30, texts=texts, date=NEW)
    web.voters(independent(100), f"{FAMOUS}/")
    web.voters([f"s{number}.farm.net" for number in range(101)], f"{ATTACKER}/", date=NEW)


def own_subdomains(web):
    """The same with 101 subdomains of the attacker's own."""
    texts = web.site(f"{FAMOUS}/", 30)
    web.site(f"{ATTACKER}/", 30, texts=texts, date=NEW)
    web.voters(independent(100), f"{FAMOUS}/")
    web.voters([f"s{number}.{ATTACKER}" for number in range(101)], f"{ATTACKER}/", date=NEW)


def canonical_ignored(web):
    """The same, and every copy names the original as canonical."""
    texts = web.site(f"{FAMOUS}/", 30, canonical=f"{FAMOUS}/")
    web.site(f"{ATTACKER}/", 30, texts=texts, date=NEW, canonical=f"{FAMOUS}/")
    web.voters(independent(100), f"{FAMOUS}/")
    web.voters([f"s{number}.{ATTACKER}" for number in range(101)], f"{ATTACKER}/", date=NEW)


def deeper(web):
    """No links between sites; the original in a directory, the copy at its root, canonical names the original."""
    texts = web.site(f"{FAMOUS}/docs/", 30, canonical=f"{FAMOUS}/docs/")
    web.site(f"{ATTACKER}/", 30, texts=texts, date=NEW, canonical=f"{FAMOUS}/docs/")


def tie(web):
    """Nothing links to either, and the attacker comes first in the input."""
    earlier = Web(web.rng)
    texts = earlier.site(f"{FAMOUS}/", 30)
    web.site(f"{ATTACKER}/", 30, texts=texts, date=NEW)
    web.records += earlier.records


def one_vote(web):
    """A tie but for one page somewhere that links to the attacker."""
    texts = web.site(f"{FAMOUS}/", 30)
    web.site(f"{ATTACKER}/", 30, texts=texts, date=NEW)
    web.voters(["www.evil.net"], f"{ATTACKER}/", date=NEW)


def known_in_part(web):
    """Ten known pages of a large host, fetched early, copied to the attacker's root."""
    texts = web.site(f"en.{FAMOUS}/wiki/", 10, date=OLD)
    web.site(f"{ATTACKER}/", 10, texts=texts, date=NEW)


def crawled_first(web):
    """Nothing links to either, and the copy was fetched years before the original."""
    texts = web.site(f"{ATTACKER}/", 30, date=OLD)
    web.site(f"{FAMOUS}/", 30, texts=texts, date=NEW)


ARRANGEMENTS = [
    honest,
    one_farm,
    larger,
    subdomains_of_a_farm,
    own_subdomains,
    canonical_ignored,
    deeper,
    tie,
    one_vote,
    known_in_part,
    crawled_first,
]


class Trust(suite.Part):
    """The original host is never on the list, whatever the order of the input."""

    name = "trust"
    small, large, finite = len(ARRANGEMENTS), 2 * len(ARRANGEMENTS), True

    def case(self, number, folder):
        arrange = ARRANGEMENTS[number % len(ARRANGEMENTS)]
        web = Web(self.random(number))
        arrange(web)
        # The second round has every crawl backwards.
        backwards = number >= len(ARRANGEMENTS)
        records = web.records[::-1] if backwards else web.records
        (folder / "crawl.warc").write_bytes(b"".join(records))
        verdict = suite.Verdict(arrange.__doc__.split(".")[0] + (", backwards" if backwards else ""))
        self.workshop.must(
            "run", "crawl.warc", "-o", "atlas", "--no-report", "-q", folder=folder, timeout=120
        )
        asked = ["avoid", "atlas", "--list", "0"]
        outcome = self.workshop.run(*asked, "--format", "json", folder=folder)
        verdict.counts["lists"] += 1
        if outcome.trouble() or outcome.code != 0:
            verdict.problems.append(f"`{outcome.command()}`: {outcome.trouble() or outcome.last_words()}")
            return verdict
        entries = json.loads(outcome.stdout).get("entries", [])
        hosts = [entry["host"] for entry in entries]
        verdict.expect(
            not any(host == FAMOUS or host.endswith("." + FAMOUS) for host in hosts),
            f"the original is on the list: {json.dumps(entries)[:600]}",
        )
        if arrange in (honest, subdomains_of_a_farm, own_subdomains):
            # A list that is empty has protected nobody: here the evidence is strong.
            verdict.expect(ATTACKER in hosts, f"the mirror is not on the list: {hosts}")
        protected = self.workshop.run(*asked, "--protect", FAMOUS, "--format", "json", folder=folder)
        if verdict.expect(
            protected.code == 0, f"`{protected.command()}` exits {protected.code}: {protected.last_words()}"
        ):
            kept = [entry["host"] for entry in json.loads(protected.stdout).get("entries", [])]
            verdict.expect(FAMOUS not in kept, "a protected host is on the list")
        return verdict
