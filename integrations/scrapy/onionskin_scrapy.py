"""Skip known copies in a Scrapy crawl.

``onionskin avoid ATLAS --format scrapy`` writes ``onionskin-scrapy.json``. In the settings of a project::

    DOWNLOADER_MIDDLEWARES = {"onionskin_scrapy.AvoidMiddleware": 50}
    ONIONSKIN_AVOID_FILE = "onionskin-scrapy.json"

Requests to addresses on the list are dropped before they are sent, and before robots.txt is asked for, as 50 comes before Scrapy's own
middlewares. What was dropped is counted under ``onionskin/skipped`` in the stats.

>>> avoid = AvoidList({"www.example.org": {"all": False, "prefixes": ["/mirror/"], "exact": ["/old.html"]}})
>>> avoid.skips("https://www.example.org/mirror/a?b=1"), avoid.skips("https://www.example.org/old.html?b=1")
(True, False)
>>> avoid.deny_patterns()
['^https?://www\\\\.example\\\\.org/mirror/', '^https?://www\\\\.example\\\\.org/old\\\\.html$']
"""

import json
import re

__all__ = ["AvoidList", "AvoidMiddleware"]

FORMAT = "onionskin-avoid-scrapy"
VERSION = 1

_DEFAULT_PORTS = {"http": "80", "https": "443"}
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ADDRESS = re.compile(r"(https?)://([^/?#]*)([^?#]*)(\?[^#]*)?", re.IGNORECASE)
_PERCENT = re.compile(r"%([0-9A-Fa-f]{2})?")
_REGEX_SIGNS = re.compile(r"[\\^$.|?*+()\[\]{}]")


class AvoidList:
    """What to skip: for each host all of it, some directories, or single addresses."""

    def __init__(self, hosts):
        self._hosts = {
            host: (bool(rules["all"]), frozenset(rules["prefixes"]), frozenset(rules["exact"]))
            for host, rules in hosts.items()
        }

    @classmethod
    def load(cls, path):
        """Reads the file that ``onionskin avoid --format scrapy`` writes; ValueError when it is something else."""
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(f"{path}: not a file that onionskin wrote for Scrapy")
        if content.get("version") != VERSION:
            raise ValueError(f"{path}: version {content.get('version')}; this module reads version {VERSION}")
        return cls(content["hosts"])

    def __len__(self):
        return sum(1 if everything else len(prefixes) + len(exact) for everything, prefixes, exact in self._hosts.values())

    def skips(self, url):
        """Whether an address is on the list. Addresses with a user name never are."""
        parts = _split(url)
        if parts is None:
            return False
        host, path, query = parts
        rules = self._hosts.get(host)
        if rules is None:
            return False
        everything, prefixes, exact = rules
        if everything or path + query in exact:
            return True
        return any(path[: at + 1] in prefixes for at, sign in enumerate(path) if sign == "/") if prefixes else False

    def deny_patterns(self):
        """Regular expressions for ``LinkExtractor(deny=...)``, which then does not even make requests. They see links as they are written:
        the middleware stays the one that decides."""
        patterns = []
        for host, (everything, prefixes, exact) in sorted(self._hosts.items()):
            # A port that is the default of one scheme can only stand in an address of the other.
            scheme = {"80": "https", "443": "http"}.get(_port(host), "https?")
            begin = f"^{scheme}://{_escape(host)}"
            if everything:
                patterns.append(f"{begin}/")
                continue
            patterns += [begin + _escape(prefix) for prefix in sorted(prefixes)]
            patterns += [f"{begin}{_escape(address)}$" for address in sorted(exact)]
        return patterns


class AvoidMiddleware:
    """Downloader middleware that drops requests to addresses on the list in the setting ``ONIONSKIN_AVOID_FILE``.

    A request with ``meta={"onionskin_look_again": True}`` is let through, to see whether a copy still is one.
    """

    def __init__(self, avoid, stats):
        self.avoid = avoid
        self.stats = stats

    @classmethod
    def from_crawler(cls, crawler):
        from scrapy.exceptions import NotConfigured

        path = crawler.settings.get("ONIONSKIN_AVOID_FILE")
        if not path:
            raise NotConfigured("ONIONSKIN_AVOID_FILE is not set")
        avoid = AvoidList.load(path)
        crawler.stats.set_value("onionskin/rules", len(avoid))
        return cls(avoid, crawler.stats)

    def process_request(self, request, spider=None):
        from scrapy.exceptions import IgnoreRequest

        if not self.avoid.skips(request.url):
            return None
        if request.meta.get("onionskin_look_again"):
            self.stats.inc_value("onionskin/looked_again")
            return None
        self.stats.inc_value("onionskin/skipped")
        raise IgnoreRequest("a copy that is on the list of onionskin")


def _split(url):
    """Host, path and query in the spelling that rules have; None for what no rule can hold for."""
    match = _ADDRESS.match(url)
    if match is None or "@" in match[2]:
        return None
    scheme, authority, query = match[1].lower(), match[2].lower(), _tidy(match[4] or "").replace("'", "%27")
    port = _port(authority)
    if port is not None and port in ("", _DEFAULT_PORTS[scheme]):
        authority = authority[: -len(port) - 1]
    return authority, _without_dots(_tidy(match[3]) or "/"), query


def _port(authority):
    """What stands after the colon; None without one. IPv6 addresses have colons in their brackets."""
    host, colon, port = authority.rpartition(":")
    return port if colon and "]" not in port else None


def _tidy(text):
    """Escapes in upper case, and none where it is not needed."""

    def one(match):
        if match[1] is None:
            return "%25"
        sign = chr(int(match[1], 16))
        return sign if sign in _UNRESERVED else f"%{match[1].upper()}"

    return _PERCENT.sub(one, text)


def _without_dots(path):
    """Without the segments ``.`` and ``..``, which would lead out of a directory that a rule holds for."""
    if "/." not in path:
        return path
    kept = []
    segments = path.split("/")[1:]
    for number, segment in enumerate(segments):
        last = number + 1 == len(segments)
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
            continue
        if last:
            kept.append("")
    return "/" + "/".join(kept)


def _escape(text):
    return _REGEX_SIGNS.sub(r"\\\g<0>", text)
