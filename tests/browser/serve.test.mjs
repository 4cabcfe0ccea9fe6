// Goes through every page of `onionskin serve` in a browser, over a web that is out to harm: scripts in titles and texts, addresses that run code, letters
// of all directions, an address of 4,000 characters.
//
// Run by `cargo xtask test`, which sets ONIONSKIN to the binary, CHROMIUM to the browser, and NODE_PATH to where the packages are.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

const packages = createRequire(join(process.env.NODE_PATH, "here.js"));
const { chromium } = packages("playwright-core");
const axe = readFileSync(packages.resolve("axe-core/axe.min.js"), "utf8");
const token = "a-token-that-nobody-guesses";

let folder;
let browser;
let server;
let base;

/// Filler that is never the same twice, so that only what is planted is a copy.
const filler = (seed, words) => Array.from({ length: words }, (_, at) => `w${seed}x${(at * 7919 + seed * 104729) % 9973}`).join(" ");

const script = `<script>globalThis.harmed = true</script><img src=x onerror="globalThis.harmed = true">`;
const longUrl = `http://long.example/${"a".repeat(3980)}`;
const body = filler(1, 300);
/// Pages that are planted, as files of a folder of hosts: path, title, what is on it.
const planted = [
  ["evil.example/index.html", "&lt;script&gt;globalThis.harmed = true&lt;/script&gt;", `${body} danger &lt;script&gt;globalThis.harmed = true&lt;/script&gt; &lt;img src=x onerror=globalThis.harmed=true&gt;`],
  ["evil.example/copy.html", "A copy of danger", `${body} danger and more`],
  ["hebrew.example/index.html", "שלום עולם — ברוכים הבאים", `שלום עולם ${filler(2, 200)}`],
  ["arabic.example/index.html", "مرحبا بالعالم", `مرحبا بالعالم ${filler(3, 200)}`],
  ["cjk.example/index.html", "東京タワーと富士山の写真", `東京 富士山 ${filler(4, 200)}`],
];

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "onionskin-serve-"));
  const onionskin = (...words) =>
    execFileSync(process.env.ONIONSKIN, [...words, "--quiet"], { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  onionskin("generate", "demo", "--pages", "600", "--format", "warc", "-o", join(folder, "web"));
  for (const [path, title, text] of planted) {
    const file = join(folder, "hosts", path);
    mkdirSync(join(file, ".."), { recursive: true });
    writeFileSync(file, `<!doctype html><meta charset=utf-8><title>${title}</title><p>${text}</p>`);
  }
  const lines = [
    { url: longUrl, text: `longest ${filler(5, 200)}` },
    { url: "javascript:globalThis.harmed=true", text: `scheming ${filler(6, 200)}` },
    { url: "http://quote.example/\"><script>globalThis.harmed=true</script>", text: `quoted ${filler(7, 200)}` },
  ];
  writeFileSync(join(folder, "odd.jsonl"), lines.map((line) => JSON.stringify(line) + "\n").join(""));
  onionskin("run", join(folder, "web"), join(folder, "hosts"), join(folder, "odd.jsonl"), "-o", join(folder, "atlas"), "--index");
  server = spawn(process.env.ONIONSKIN, ["serve", join(folder, "atlas"), "--seen", join(folder, "seen"), "--listen", "127.0.0.1:0", "--json", "--quiet"], {
    env: { ...process.env, ONIONSKIN_TOKEN: token },
    stdio: ["ignore", "pipe", "inherit"],
  });
  base = await new Promise((resolve, reject) => {
    let told = "";
    server.stdout.on("data", (data) => {
      told += data;
      if (told.includes("\n")) resolve(JSON.parse(told).url.replace(/\/$/, ""));
    });
    server.on("exit", (code) => reject(new Error(`the server ended with ${code}`)));
  });
  const executablePath = execFileSync("sh", ["-c", `command -v "$CHROMIUM"`], { encoding: "utf8" }).trim();
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
});

after(async () => {
  await browser?.close();
  server?.removeAllListeners("exit");
  if (server?.exitCode === null) {
    const ended = new Promise((resolve) => server.on("exit", resolve));
    server.kill();
    await ended;
  }
  rmSync(folder, { recursive: true, force: true });
});

const desk = { viewport: { width: 1280, height: 900 } };
const phone = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true };

/// Opens a page, looks at it, and makes sure of what must hold of every page.
async function open(path, options, look = async () => {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const complaints = [];
  const elsewhere = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => request.url().startsWith(base) || request.url().startsWith("data:") || elsewhere.push(request.url()));
  const response = await page.goto(base + path, { waitUntil: "load" });
  assert.equal(response.status(), 200, path);
  assert.ok(response.headers()["content-security-policy"].includes("default-src 'none'"), path);
  const found = await look(page);
  if (options.javaScriptEnabled !== false) {
    assert.equal(await page.evaluate(() => globalThis.harmed), undefined, `a script of a crawled page ran on ${path}`);
  }
  await context.close();
  assert.deepEqual(complaints, [], path);
  assert.deepEqual(elsewhere, [], `${path} loads something from elsewhere`);
  return found;
}

const api = async (path) => (await fetch(`${base}/api/v1${path}`)).json();
const find = async (q) => (await api(`/search?q=${encodeURIComponent(q)}&fold=off`)).results;

/// Every kind of page, with numbers that exist.
async function everyPage() {
  const [evil] = await find("danger globalThis");
  const [odd] = await find("scheming");
  const { clusters } = await api("/clusters");
  const { collections } = await api("/collections?noise=true");
  const group = collections[0].group;
  const word = (await api("/documents/0")).text.match(/[a-z]{4,}/)[0];
  const members = (await api(`/clusters/${clusters[0].cluster}`)).members;
  return [
    "/",
    "/search",
    `/search?q=${word}`,
    `/search?q=${word}&fold=off`,
    `/search?q=${word}&collection=${group}`,
    "/search?q=danger&fold=off",
    `/search?q=${encodeURIComponent(script)}`,
    "/search?q=...",
    `/documents/${evil.doc}`,
    `/documents/${odd.doc}`,
    "/clusters",
    "/clusters?sort=unlike&only=cross",
    `/clusters/${clusters[0].cluster}`,
    "/collections",
    "/collections?noise=1&sort=replicas",
    `/collections/${group}`,
    `/collections/${group}/replicas`,
    `/compare?a=${members[0].doc}&b=${members[1].doc}`,
    `/compare?a=${evil.doc}&b=${evil.doc + 1}`,
    "/compare",
    "/alternates",
    `/alternates?url=${encodeURIComponent(longUrl)}`,
    "/alternates?url=javascript:alert(1)",
    "/downloads",
    "/filter",
    "/filter?k=10&s=8&r=1&scale=log",
    "/filter?k=0&s=x&r=9",
    "/seen",
    "/api",
  ];
}

for (const [place, options] of Object.entries({ desk, phone, dark: { ...desk, colorScheme: "dark" } })) {
  test(`every page fits, loads nothing from elsewhere and keeps nobody out: ${place}`, async () => {
    for (const path of await everyPage()) {
      await open(path, options, async (page) => {
        const { wide, inner } = await page.evaluate(() => ({ wide: document.documentElement.scrollWidth, inner: innerWidth }));
        assert.ok(wide <= inner, `${path} is ${wide} wide on ${inner}`);
        assert.ok((await page.title()).endsWith("onionskin"), path);
        assert.equal(await page.locator("h1").count(), 1, path);
        // Its own policy keeps axe out; it is put in as the debugger would.
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => globalThis.axe.run(document));
        assert.deepEqual(violations.map((found) => `${path}: ${found.id}: ${found.nodes[0].html.slice(0, 200)}`), []);
      });
    }
  });
}

test("every page works without scripts", async () => {
  for (const path of await everyPage()) {
    await open(path, { ...desk, javaScriptEnabled: false }, async (page) => {
      assert.ok((await page.locator("main").innerText()).trim().length > 10, path);
    });
  }
  await open("/", { ...desk, javaScriptEnabled: false }, async (page) => {
    await page.fill("#q", "danger");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/search\?q=danger/);
    assert.ok((await page.locator(".hits > li").count()) >= 1);
  });
});

test("nothing of a crawled page runs, and none of its schemes can be clicked", async () => {
  const [evil] = await find("danger globalThis");
  await open(`/documents/${evil.doc}`, desk, async (page) => {
    assert.ok((await page.locator(".text").innerText()).includes("<script>globalThis.harmed"));
    assert.equal(await page.locator("main script, main img, main iframe, main style").count(), 0);
  });
  for (const [query, address] of [["scheming", "javascript:"], ["quoted", "http://quote.example/"]]) {
    await open(`/search?q=${query}`, desk, async (page) => {
      assert.ok((await page.locator("main").innerText()).includes(address), query);
      for (const href of await page.$$eval("a", (links) => links.map((link) => link.getAttribute("href")))) {
        assert.match(href, /^(https?:\/\/|\/|#|\?)/, href);
      }
      assert.equal(await page.locator("main script").count(), 0);
    });
  }
});

test("letters of all directions and scripts are found and stand as they should", async () => {
  for (const [query, title, direction] of [
    ["שלום", planted[2][1], "rtl"],
    ["مرحبا", planted[3][1], "rtl"],
    ["富士山", planted[4][1], "ltr"],
  ]) {
    await open(`/search?q=${encodeURIComponent(query)}`, desk, async (page) => {
      const heading = page.locator(".hits h2").first();
      assert.equal(await heading.innerText(), title);
      assert.equal(await heading.evaluate((element) => getComputedStyle(element).direction), direction);
      assert.ok((await page.locator(".hits mark").count()) >= 1, query);
    });
  }
  await open("/search?q=longest", phone, async (page) => {
    assert.ok((await page.locator(".hits .address").first().innerText()).length < 200);
    assert.equal((await page.locator(".hits .address a").first().getAttribute("href")).length, longUrl.length);
  });
});

test("replicas are folded, and roll out", async () => {
  const { collections } = await api("/collections?noise=true");
  const group = collections.find((row) => row.replicas > 1).group;
  const copies = (await api(`/collections/${group}`)).members;
  const text = (await api(`/documents/${copies[0].docs[0]}`)).text;
  const words = [...new Set(text.match(/[a-z]{5,}/g))].slice(0, 3).join(" ");
  await open(`/search?q=${encodeURIComponent(words)}`, desk, async (page) => {
    const item = page.locator(".hits > li", { has: page.locator(`a[href="/collections/${group}#replicas"]`) });
    assert.equal(await item.count(), 1, "one line a collection");
    await item.getByRole("link", { name: "Replica", exact: true }).click();
    await item.locator(".rolled tbody tr").first().waitFor();
    assert.equal(await item.locator(".rolled tbody tr").count(), Math.min(copies.length, 50));
    await item.getByRole("link", { name: "Collection", exact: true }).click();
    await item.locator(".rolled .hits > li").first().waitFor();
    const inside = await item.locator(".rolled .hits > li").count();
    assert.ok(inside >= 2, `${inside} pages of the collection`);
    await item.getByRole("link", { name: "Collection", exact: true }).click();
    assert.equal(await item.locator(".rolled").count(), 0, "and up again");
  });
  const off = (await api(`/search?q=${encodeURIComponent(words)}&fold=off&limit=50`)).results.filter((hit) => hit.group === group);
  assert.ok(off.length >= 2, "without folding it is cluttered");
});

test("the filter designer draws while one types", () =>
  open("/filter", desk, async (page) => {
    const before = await page.locator("svg .curve").getAttribute("d");
    await page.fill("input[name=k]", "20");
    await page.waitForFunction((old) => document.querySelector("svg .curve")?.getAttribute("d") !== old, before);
    assert.match(page.url(), /k=20/);
    assert.match(await page.locator("#result").innerText(), /\[20, 14, 2\]/);
    await page.check("input[value=log]");
    await page.waitForURL(/scale=log/);
  }));

test("a text is known after it was added", async () => {
  const text = filler(99, 400);
  const add = await fetch(`${base}/api/v1/seen/add`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
    body: JSON.stringify({ documents: [{ name: "http://kept.example/", text }] }),
  });
  assert.equal(add.status, 200);
  await open("/seen", desk, async (page) => {
    await page.fill("textarea", text);
    await page.getByRole("button", { name: "Check" }).click();
    await page.locator(".answer").waitFor();
    assert.match(await page.locator(".answer").innerText(), /Exact copy[\s\S]*kept\.example/);
  });
});

test("the keyboard is enough", () =>
  open("/collections", desk, async (page) => {
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement.id), "main");
    await page.keyboard.press("/");
    assert.equal(await page.evaluate(() => document.activeElement.id), "q");
  }));

test("what can be taken away is there", async () => {
  const page = await (await fetch(`${base}/downloads`)).text();
  const links = [...page.matchAll(/href="(\/downloads\/[^"]+)"/g)].map((found) => found[1].replaceAll("&amp;", "&"));
  assert.ok(links.length > 20, `${links.length} files`);
  for (const link of links) {
    const answer = await fetch(base + link);
    assert.equal(answer.status, 200, link);
    const bytes = new Uint8Array(await answer.arrayBuffer());
    if (link.endsWith(".parquet")) assert.equal(new TextDecoder().decode(bytes.slice(0, 4)), "PAR1", link);
  }
  const report = await fetch(`${base}/report`);
  assert.equal(report.status, 200);
  assert.match(report.headers.get("content-security-policy"), /sandbox/);
  await open("/report", desk, async (page) => {
    assert.match(await page.textContent("h1"), /^Copies in /);
    assert.ok((await page.locator("figure svg").count()) >= 4);
  });
  for (const path of ["/downloads/tables/documents/../../manifest.json", "/downloads/report/..%2f..%2fmanifest.json", "/downloads/report/%2fetc%2fpasswd"]) {
    assert.equal((await fetch(base + path)).status, 404, path);
  }
});
