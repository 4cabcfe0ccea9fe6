"""Avoid lists in Scrapy itself, and in PyYAML."""

import doctest
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading

import pytest
import yaml
from scrapy.http import HtmlResponse, Request
from scrapy.linkextractors import LinkExtractor

ROOT = pathlib.Path(__file__).resolve().parents[2]
INTEGRATION = ROOT / "integrations" / "scrapy"
RENDER = pathlib.Path(os.environ["ONIONSKIN"]).parent / "examples" / "render_avoid"
sys.path.insert(0, str(INTEGRATION))

import onionskin_scrapy  # noqa: E402


def entry(host, *rules, **more):
    return {
        "group": 0, "replica": 1, "kind": "mirror", "name": "A manual", "principal": "http://kept.example/", "root": f"http://{host}/",
        "host": host, "other_ports": False, "rules": list(rules), "pages": 3, "bytes": 3000, "coverage": 1.0, "similar": 3, "unique": 0,
        "checked": None, **more,
    }  # fmt: skip


def avoid_json(path, *entries):
    head = {"format": "onionskin-avoid", "version": 1, "tool": "test", "recipe": None, "threshold": None, "crawl_from": None, "crawl_to": None}
    path.write_text(json.dumps({**head, "entries": list(entries)}))
    return path


def render(path, what, stdin=None):
    done = subprocess.run([RENDER, path, what], check=True, capture_output=True, text=True, input=stdin)
    return done.stdout


TRICKY = [
    entry("www.example.org", {"prefix": "/mirror/"}, {"exact": "/a.html?b=1"}, {"exact": "/%C3%A9'[x]|"}, {"exact": "/?"}),
    entry("whole.example.org", "host"),
    entry("a$b(c).example.org", {"prefix": "/a+b/(c)/"}),
    entry("port.example.org:8080", {"prefix": "/m/"}),
    entry("port.example.org:443", "host"),
    entry("[2001:db8::1]", {"prefix": "/m/"}),
    entry("quote\"'.example.org", {"exact": "/q?\\{}^`|"}),
]

# In their normalised spelling, as the list compares them.
URLS = """
http://www.example.org/
http://www.example.org/?
https://www.example.org/?x
https://www.example.org/mirror/
https://www.example.org/mirror
https://www.example.org/mirror?x=/mirror/
https://www.example.org/mirror/a/b?c=d
https://www.example.org/Mirror/
http://www.example.org/x/mirror/
http://www.example.org:8080/mirror/
http://www.example.org:443/mirror/
http://user@www.example.org/mirror/
http://wwwxexample.org/mirror/
http://sub.www.example.org/mirror/
http://www.example.org.evil.com/mirror/
http://evil.com/http://www.example.org/mirror/
http://www.example.org/a.html?b=1
http://www.example.org/a.html?b=12
http://www.example.org/a.html
http://www.example.org/axhtml?b=1
http://www.example.org/%C3%A9'[x]|
https://whole.example.org/
https://whole.example.org/anything?at=all
http://whole.example.org.example.com/
http://a$b(c).example.org/a+b/(c)/d
http://a$b(c).example.org/aab/c/d
http://port.example.org:8080/m/x
http://port.example.org/m/x
http://port.example.org:443/m/x
https://port.example.org/m/x
http://[2001:db8::1]/m/
http://[2001:db8::1]:8080/m/
http://[2001:db8::10]/m/
http://quote"'.example.org/q?\\{}^`|
""".split()


@pytest.fixture
def tricky(tmp_path):
    path = avoid_json(tmp_path / "avoid.json", *TRICKY)
    (tmp_path / "scrapy.json").write_text(render(path, "scrapy"))
    return path, onionskin_scrapy.AvoidList.load(tmp_path / "scrapy.json")


def test_the_examples_of_the_module():
    assert doctest.testmod(onionskin_scrapy) == (0, 3)


def test_the_module_skips_what_the_list_does(tricky):
    path, avoid = tricky
    told = dict(reversed(line.split("\t")) for line in render(path, "skips", "\n".join(URLS)).splitlines())
    assert set(told.values()) == {"skip", "fetch"}
    assert {url: "skip" if avoid.skips(url) else "fetch" for url in URLS} == told


@pytest.mark.parametrize(
    ("url", "skipped"),
    [
        ("HTTPS://WWW.Example.org:443/%6dirror/x#top", True),
        ("http://www.example.org/mirror/../kept", False),
        ("http://www.example.org/mirror/%2e%2E/kept", False),
        ("http://www.example.org/x/./../mirror/..", False),
        ("http://www.example.org/x/./../mirror/.", True),
        ("http://www.example.org/%c3%a9'[x]|", True),
        ("http://www.example.org/mirror%2Fx", False),
        ("http://www.example.org", False),
        ("http://whole.example.org", True),
        ("ftp://whole.example.org/", False),
        ("", False),
    ],
)
def test_other_spellings(tricky, url, skipped):
    assert tricky[1].skips(url) is skipped


def test_other_files_are_errors(tmp_path):
    for content in ["[]", "{}", '{"format": "onionskin-avoid-scrapy", "version": 2, "hosts": {}}']:
        (tmp_path / "file.json").write_text(content)
        with pytest.raises(ValueError):
            onionskin_scrapy.AvoidList.load(tmp_path / "file.json")


def test_yaml_has_the_same_patterns(tricky):
    path, avoid = tricky
    patterns = yaml.safe_load(render(path, "browsertrix"))["exclude"]
    assert sorted(patterns) == sorted(avoid.deny_patterns())
    assert yaml.safe_load(render(avoid_json(path), "browsertrix")) == {"exclude": []}


def test_link_extractor_denies(tricky):
    _, avoid = tricky
    # What a page can link to; Scrapy leaves out links to hosts that it takes for none.
    urls = [url for url in URLS if '"' not in url and "(" not in url and "@" not in url and "[" not in url]
    page = "".join(f"<a href='{url}'>x</a>" for url in urls if "'" not in url)
    response = HtmlResponse("http://start.example/", body=page.encode())
    all_links = {link.url for link in LinkExtractor().extract_links(response)}
    links = {link.url for link in LinkExtractor(deny=avoid.deny_patterns()).extract_links(response)}
    assert len(all_links) > 20
    assert links == {url for url in all_links if not avoid.skips(url)}


NODE = """
const {patterns, urls} = JSON.parse(require("fs").readFileSync(0, "utf8"));
const skipped = flags => {
  const all = patterns.map(pattern => new RegExp(pattern, flags));
  return urls.filter(url => all.some(regex => regex.test(url)));
};
console.log(JSON.stringify([skipped(""), skipped("u"), skipped("v")]));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_patterns_mean_the_same_to_javascript(tricky):
    path, avoid = tricky
    patterns = yaml.safe_load(render(path, "browsertrix"))["exclude"]
    given = json.dumps({"patterns": patterns, "urls": URLS})
    done = subprocess.run(["node", "-e", NODE], check=True, capture_output=True, text=True, input=given)
    assert json.loads(done.stdout) == [[url for url in URLS if avoid.skips(url)]] * 3


JAVA = r"""
import java.net.URL;
import java.nio.file.*;
import java.util.*;
import java.util.regex.Pattern;

/** Nutch's two filters on what java.net.URL and java.util.regex make of it. */
public class Filters {
  public static void main(String[] files) throws Exception {
    List<String> regexLines = Files.readAllLines(Path.of(files[0]));
    List<String> fastLines = Files.readAllLines(Path.of(files[1]));
    for (String url : Files.readAllLines(Path.of(files[2]))) {
      System.out.println(regex(regexLines, url) + "\t" + fast(fastLines, url) + "\t" + url);
    }
  }

  static boolean regex(List<String> lines, String url) {
    for (String line : lines) {
      char sign = line.charAt(0);
      if (sign != '#' && Pattern.compile(line.substring(1)).matcher(url).find()) {
        return sign == '-';
      }
    }
    return true;
  }

  static boolean fast(List<String> lines, String url) throws Exception {
    URL parts = new URL(url);
    String host = null;
    for (String line : lines) {
      String[] words = line.replaceFirst("#.*", "").trim().split("\\s+");
      if (words[0].equals("Host")) {
        host = words[1];
      } else if (words[0].startsWith("DenyPath") && parts.getHost().equals(host)) {
        String where = words[0].equals("DenyPathQuery") ? parts.getFile() : parts.getPath();
        if (Pattern.compile(words[1]).matcher(where).find()) {
          return true;
        }
      }
    }
    return false;
  }
}
"""


@pytest.mark.skipif(shutil.which("javac") is None, reason="no Java development kit is installed")
def test_patterns_mean_the_same_to_java(tricky, tmp_path):
    path, avoid = tricky
    (tmp_path / "Filters.java").write_text(JAVA)
    (tmp_path / "urls.txt").write_text("\n".join(URLS) + "\n")
    for name, what in [("regex.txt", "nutch-regex"), ("fast.txt", "nutch-fast")]:
        (tmp_path / name).write_text(render(path, what))
    command = ["java", "Filters.java", "regex.txt", "fast.txt", "urls.txt"]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    answers = {url: (regex, fast) for regex, fast, url in (line.split("\t") for line in done.stdout.splitlines())}
    expected = {url: "true" if avoid.skips(url) else "false" for url in URLS}
    assert {url: regex for url, (regex, _) in answers.items()} == expected
    # The fast filter sees neither ports nor users, so rules for a port are not in its file.
    plain = [url for url in URLS if ":8080" not in url and ":443" not in url and "@" not in url]
    assert {url: answers[url][1] for url in plain} == {url: expected[url] for url in plain}
    assert {answers[url][1] for url in URLS if "port.example" in url} == {"false"}


class Site(http.server.BaseHTTPRequestHandler):
    """Every page links to pages of the site and of its mirror."""

    def do_GET(self):
        self.server.asked.append(self.path)
        if self.path == "/moved":
            self.send_response(301)
            self.send_header("Location", "/mirror/moved")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        links = ["/", "/a", "/b?c=1", "/mirror", "/mirror/", "/mirror/a", "/mirror/b?c=1", "/%6Dirror/x", "/copy?x=1", "/copy?x=2", "/moved"]
        body = "".join(f'<a href="{link}">{link}</a> ' for link in links).encode()
        self.send_response(404 if self.path == "/robots.txt" else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def site():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        server.asked = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


SPIDER = """
import json, sys
import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor

start, avoid_file, stats_file, look_again = sys.argv[1:5]

class Everything(scrapy.Spider):
    name = "everything"
    custom_settings = {"ROBOTSTXT_OBEY": True, "TELNETCONSOLE_ENABLED": False}
    if avoid_file:
        custom_settings |= {
            "DOWNLOADER_MIDDLEWARES": {"onionskin_scrapy.AvoidMiddleware": 50},
            "ONIONSKIN_AVOID_FILE": avoid_file,
        }
    start_urls = [start]

    def parse(self, response):
        for link in LinkExtractor().extract_links(response):
            meta = {"onionskin_look_again": True} if look_again and link.url.endswith(look_again) else {}
            yield scrapy.Request(link.url, meta=meta)

process = CrawlerProcess({"LOG_LEVEL": "WARNING"})
crawler = process.create_crawler(Everything)
process.crawl(crawler)
process.start()
with open(stats_file, "w") as out:
    json.dump(crawler.stats.get_stats(), out, default=str)
"""


def crawl(tmp_path, site, avoid_file="", look_again=""):
    site.asked.clear()
    (tmp_path / "spider.py").write_text(SPIDER)
    start = f"http://127.0.0.1:{site.server_address[1]}/"
    command = [sys.executable, "spider.py", start, str(avoid_file), "stats.json", look_again]
    environment = {**os.environ, "PYTHONPATH": str(INTEGRATION), "no_proxy": "*"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    # Scrapy warns of what it will not take from a middleware any more.
    assert "onionskin" not in done.stderr and "ERROR" not in done.stderr, done.stderr
    return set(site.asked), json.loads((tmp_path / "stats.json").read_text())


def test_a_crawl_does_not_fetch_what_is_skipped(tmp_path, site):
    host = f"127.0.0.1:{site.server_address[1]}"
    path = avoid_json(tmp_path / "avoid.json", entry(host, {"prefix": "/mirror/"}, {"exact": "/copy?x=2"}))
    avoid_file = tmp_path / "scrapy.json"
    avoid_file.write_text(render(path, "scrapy"))

    everything, stats = crawl(tmp_path, site)
    kept = {"/robots.txt", "/", "/a", "/b?c=1", "/mirror", "/copy?x=1", "/moved"}
    mirrored = {"/mirror/", "/mirror/a", "/mirror/b?c=1", "/mirror/moved", "/copy?x=2"}
    assert everything in (kept | mirrored | {"/%6Dirror/x"}, kept | mirrored | {"/mirror/x"})
    assert "onionskin/skipped" not in stats

    fetched, stats = crawl(tmp_path, site, avoid_file)
    assert fetched == kept
    assert stats["onionskin/skipped"] == 6
    assert stats["onionskin/rules"] == 2

    fetched, stats = crawl(tmp_path, site, avoid_file, look_again="/mirror/a")
    assert fetched == kept | {"/mirror/a"}
    assert (stats["onionskin/skipped"], stats["onionskin/looked_again"]) == (5, 1)


def test_a_host_that_is_skipped_is_not_asked_for_robots(tmp_path, site):
    host = f"127.0.0.1:{site.server_address[1]}"
    avoid_file = tmp_path / "scrapy.json"
    avoid_file.write_text(render(avoid_json(tmp_path / "avoid.json", entry(host, "host")), "scrapy"))
    fetched, stats = crawl(tmp_path, site, avoid_file)
    assert fetched == set()
    assert stats["onionskin/skipped"] == 1


def test_the_middleware_by_itself():
    from scrapy.exceptions import IgnoreRequest, NotConfigured
    from scrapy.utils.test import get_crawler

    with pytest.raises(NotConfigured):
        onionskin_scrapy.AvoidMiddleware.from_crawler(get_crawler())
    crawler = get_crawler()
    avoid = onionskin_scrapy.AvoidList({"h": {"all": True, "prefixes": [], "exact": []}})
    middleware = onionskin_scrapy.AvoidMiddleware(avoid, crawler.stats)
    assert middleware.process_request(Request("http://g/")) is None
    with pytest.raises(IgnoreRequest):
        middleware.process_request(Request("http://h/"))
