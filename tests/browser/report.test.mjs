// Opens reports in a browser, as readers do: on a desk, on a phone, in the dark, on paper, without scripts.
//
// Run by `cargo xtask test`, which sets ONIONSKIN to the binary, CHROMIUM to the browser, and NODE_PATH to where the packages are.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

const packages = createRequire(join(process.env.NODE_PATH, "here.js"));
const { chromium } = packages("playwright-core");
const axe = readFileSync(packages.resolve("axe-core/axe.min.js"), "utf8");

const onionskin = (...words) =>
  execFileSync(process.env.ONIONSKIN, [...words, "--quiet"], { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });

let folder;
let browser;
const reports = {};

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "onionskin-browser-"));
  onionskin("demo", "-o", join(folder, "demo"));
  const atlas = join(folder, "demo", "atlas");
  for (const search of [["--preset", "sgm98-4"], ["--preset", "sgm98-2"], ["--method", "paragraphs"]]) {
    onionskin("similar", atlas, ...search, "--for-report");
  }
  reports.demo = join(folder, "whole");
  onionskin("report", atlas, "-o", reports.demo);
  writeFileSync(join(folder, "two.jsonl"), '{"url":"http://a.example/","text":"one text"}\n{"url":"http://b.example/","text":"one text"}\n');
  onionskin("run", join(folder, "two.jsonl"), "-o", join(folder, "two"));
  reports.two = join(folder, "two", "report");
  reports.changes = join(folder, "changes");
  onionskin("report", join(folder, "two"), atlas, "-o", reports.changes);
  const executablePath = execFileSync("sh", ["-c", `command -v "$CHROMIUM"`], { encoding: "utf8" }).trim();
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
});

after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

async function open(report, options, look) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const complaints = [];
  const requests = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => requests.push(request.url()));
  const address = pathToFileURL(join(report, "report.html")).href;
  await page.goto(address, { waitUntil: "load" });
  const found = await look(page);
  await context.close();
  assert.deepEqual(complaints, []);
  assert.deepEqual(requests, [address], "nothing else is loaded");
  return found;
}

const desk = { viewport: { width: 1280, height: 900 } };
const phone = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true };

for (const name of ["demo", "two", "changes"]) {
  for (const [place, options] of Object.entries({ desk, phone })) {
    test(`${name}: fits on a ${place}, and figures can be read`, () =>
      open(reports[name], options, async (page) => {
        const seen = await page.evaluate(() => {
          const figures = [...document.querySelectorAll("figure")].map((figure) => {
            const svg = figure.querySelector("svg");
            const box = svg.getBoundingClientRect();
            const letters = [...svg.querySelectorAll("text")].map((text) => {
              const at = text.getBoundingClientRect();
              return {
                words: text.textContent,
                inside: at.left >= box.left - 1 && at.right <= box.right + 1 && at.top >= box.top - 1 && at.bottom <= box.bottom + 1,
                pixels: at.width && at.height,
              };
            });
            return {
              id: figure.id,
              says: figure.querySelector("figcaption").textContent,
              width: box.width,
              letters,
            };
          });
          return { wide: document.documentElement.scrollWidth, inner: innerWidth, figures };
        });
        assert.ok(seen.wide <= seen.inner, `the page is ${seen.wide} wide on ${seen.inner}`);
        assert.ok(seen.figures.length >= (name === "changes" ? 2 : 4));
        for (const figure of seen.figures) {
          assert.ok(figure.says.length > 20, figure.id);
          assert.ok(figure.width > 300, figure.id);
          assert.ok(figure.letters.length > 4, `${figure.id} has axes and words`);
          for (const text of figure.letters) {
            assert.ok(text.inside, `${figure.id}: ${JSON.stringify(text.words)} is cut off`);
            assert.ok(text.pixels > 0, `${figure.id}: ${JSON.stringify(text.words)} is not seen`);
          }
        }
      }));
  }
}

/// How much two colours differ, as WCAG counts it.
const contrast = () => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\d.]+/g).map((part) => {
      const value = part / 255;
      return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const inks = ["p", "figcaption", "a", "svg text", "th"].map((what) => {
    const style = getComputedStyle(document.querySelector(what));
    return light(what === "svg text" ? style.fill : style.color);
  });
  return { paper, least: Math.min(...inks.map((ink) => (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05))) };
};

for (const colorScheme of ["light", "dark"]) {
  test(`letters stand out in ${colorScheme}`, () =>
    open(reports.demo, { ...desk, colorScheme }, async (page) => {
      const { paper, least } = await page.evaluate(contrast);
      assert.equal(paper > 0.5, colorScheme === "light");
      assert.ok(least >= 4.5, `contrast ${least}`);
    }));
}

test("small, and there at once", async () => {
  assert.ok(statSync(join(reports.demo, "report.html")).size < 3_000_000);
  // The best of three: what else the machine does is not the page's fault.
  let took = Infinity;
  for (let turn = 0; turn < 3; turn++) {
    const now = await open(reports.demo, desk, (page) =>
      page.evaluate(() => performance.getEntriesByType("navigation")[0].loadEventEnd),
    );
    took = Math.min(took, now);
  }
  assert.ok(took < 1000, `${took} ms`);
});

test("without scripts it says the same", () =>
  open(reports.demo, { ...desk, javaScriptEnabled: false }, async (page) => {
    assert.match(await page.textContent("h1"), /^Copies in /);
    assert.equal(await page.locator("section h2").count(), await page.locator("nav a").count());
    await page.locator("details summary").first().click();
    assert.ok(await page.locator("details table").first().isVisible());
  }));

test("it can be printed", () =>
  open(reports.demo, desk, async (page) => {
    await page.emulateMedia({ media: "print", colorScheme: "dark" });
    const { paper } = await page.evaluate(contrast);
    assert.ok(paper > 0.99, "paper is white, whatever the screen is");
    const pdf = await page.pdf({ format: "A4" });
    assert.ok(pdf.length > 20_000);
  }));

for (const name of ["demo", "two", "changes"]) {
  test(`${name}: nothing that keeps anybody out`, () =>
    open(reports[name], desk, async (page) => {
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => globalThis.axe.run(document));
      const told = violations.map((found) => `${found.id}: ${found.nodes[0].html.slice(0, 200)}`);
      assert.deepEqual(told, []);
    }));
}

test("links lead to sections, and the numbers for programs are those of the page", () =>
  open(reports.demo, desk, async (page) => {
    const targets = await page.$$eval("nav a", (links) => links.map((link) => document.querySelector(link.getAttribute("href"))?.tagName));
    assert.ok(targets.every((tag) => tag === "SECTION"));
    const embedded = JSON.parse(await page.textContent("#report-data"));
    assert.deepEqual(embedded, JSON.parse(readFileSync(join(reports.demo, "report.json"), "utf8")));
    const levels = embedded.sections[0].tables.find((table) => table.id === "levels");
    const shown = await page.textContent("#table-levels tbody tr:nth-child(1) td:nth-child(4)");
    assert.equal(Number(shown.replaceAll(",", "")), levels.rows[0].duplicates);
  }));
