// Search by keyboard: letters are letters in every field, results are walked, opened and previewed by keys; what the address keeps.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { check, commit, explorer, until, visit, written } from "./session.mjs";

const MANY = 26;
const FILES = {
  "jk one.md": "---\ntags: [sky]\n---\nA barometer, [[jk two]].\n",
  "jk two.md": "A barometer too.\n",
  "sub/jk three.md": "---\ntags: [sky]\n---\nThe third barometer.\n",
  ...Object.fromEntries(Array.from({ length: MANY }, (_, n) => [`many/gauge ${n}.md`, `A pluviometer, number ${n}.\n`])),
};

const value = (tab, selector) => tab.$eval(selector, (field) => field.value);
const hash = (tab) => tab.evaluate(() => decodeURIComponent(location.hash));
const focused = (tab) => tab.evaluate(() => document.activeElement?.querySelector(".name")?.textContent ?? document.activeElement?.ariaLabel);

export async function searchView(browser) {
  const { tab, faults, close } = await explorer(browser, written(FILES));
  await fields(tab);
  await keys(tab);
  await composition(tab);
  await address(tab);
  await cut(tab);
  check("search: the console is empty", !faults.length, faults);
  await close();
  await freshness(browser);
}

const TYPED = "jack k two";

async function fields(tab) {
  await visit(tab, "#/search/barometer");
  await until(() => tab.$(".result"));
  await tab.click(".why-not summary");
  await tab.click(".why-not input");
  await tab.keyboard.type(TYPED);
  check("j, k and Space are letters in the title of a missing note", (await value(tab, ".why-not input")) === TYPED, await value(tab, ".why-not input"));
  await tab.keyboard.press("Enter");
  check("Enter there opens no result", (await hash(tab)) === "#/search/barometer", await hash(tab));
  await tab.click("text=Compare");
  await tab.click(".comparison input");
  await tab.keyboard.type(TYPED);
  check("j, k and Space are letters in the other query", (await value(tab, ".comparison input")) === TYPED, await value(tab, ".comparison input"));
  await tab.click("text=Compare");
}

async function keys(tab) {
  await visit(tab, "#/search/barometer");
  const names = () => tab.$$eval(".result .name", (rows) => rows.map((row) => row.textContent));
  const all = await until(async () => (await tab.$('.facets button:has-text("#sky")')) && (await names()).length);
  const facet = '.facets button:has-text("#sky")';
  await until(() => tab.$(facet));
  await tab.focus(facet);
  await tab.keyboard.press("Enter");
  check("Enter on a facet filters and opens nothing", await until(async () => (await names()).length === 2 && (await hash(tab)).startsWith("#/search/")), [await names(), await hash(tab)]);
  await tab.keyboard.press("Space");
  check("Space on a facet takes it back", await until(async () => (await names()).length === all), await names());
  await tab.focus(".result:nth-child(2) summary");
  await tab.keyboard.press("Enter");
  check("Enter on a score shows its reason", await until(async () => (await tab.$(".result:nth-child(2) details[open]")) && (await hash(tab)) === "#/search/barometer"), await hash(tab));
  await tab.focus('button:text-is("Compare")');
  await tab.keyboard.press("Space");
  check("Space on a button presses it", await until(() => tab.$(".comparison")));
  await tab.keyboard.press("Space");
  await until(() => tab.$(".result"));

  const [, second, third] = await names();
  await tab.focus(".result:nth-child(3) > a");
  await tab.keyboard.press("Enter");
  check("Enter opens the result that has the focus", await until(async () => (await tab.$eval(".note h1", (title) => title.textContent)) === third), [third, await hash(tab)]);
  await tab.goBack();
  await until(() => tab.$(".result"));
  await tab.focus(".search-box input");
  await tab.keyboard.press("ArrowDown");
  check("the arrow goes from the field to the results", await until(async () => (await focused(tab)) === second), await focused(tab));
  await tab.keyboard.press("Space");
  check("Space previews a result", await until(() => tab.$eval(".inspector h2", (title, second) => title.textContent === second, second)));
  await tab.keyboard.press("j");
  check("j walks on", await until(async () => (await focused(tab)) === third), await focused(tab));
  await tab.keyboard.press("k");
  await tab.keyboard.press("ArrowUp");
  await tab.keyboard.press("ArrowUp");
  check("the arrow leads back to the field", await until(async () => (await focused(tab)) === "Search the vault"), await focused(tab));
}

/** Enter that ends a conversion of an input method is no Enter for the page. */
async function composition(tab) {
  await visit(tab, "#/search");
  await tab.click(".search-box input");
  const debug = await tab.context().newCDPSession(tab);
  const compose = async () => {
    await tab.keyboard.type("barometer");
    await until(() => tab.$('.result[aria-current="true"], [role=option][aria-selected=true]'));
    await debug.send("Input.imeSetComposition", { text: "き", selectionStart: 1, selectionEnd: 1 });
    await tab.evaluate(() => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", isComposing: true, bubbles: true, cancelable: true })));
    await debug.send("Input.imeSetComposition", { text: "", selectionStart: 0, selectionEnd: 0 });
  };
  await compose();
  check("Enter of an input method opens no result", (await hash(tab)).startsWith("#/search"), await hash(tab));
  const before = await hash(tab);
  await tab.keyboard.press("Control+k");
  await tab.waitForSelector("dialog.menu[open] input:focus");
  await compose();
  check("nor a row of the command menu", (await tab.$("dialog.menu[open]")) && (await hash(tab)) === before, await hash(tab));
  await tab.keyboard.press("Escape");
}

async function address(tab) {
  await visit(tab, "#/search/barometer");
  await until(() => tab.$('.facets button:has-text("#sky")'));
  await tab.click('.facets button:has-text("#sky")');
  await tab.click("text=Compare");
  await tab.click(".comparison input");
  await tab.keyboard.type("third");
  check("a facet and the other query are in the address", await until(async () => /\?.*tag=#sky.*vs=third/.test(await hash(tab))), await hash(tab));
  await tab.reload();
  await until(() => tab.$(".compare .move"));
  check("and survive a reload", (await value(tab, ".comparison input")) === "third" && (await tab.$('.facets button[aria-pressed="true"]:has-text("#sky")')));
  await tab.click("text=Compare");
  const names = () => tab.$$eval(".result .name", (rows) => rows.map((row) => row.textContent).sort().join());
  check("a shared address shows the same results", await until(async () => (await names()) === "Jk One,Jk Three"), await names());
}

async function cut(tab) {
  await visit(tab, "#/search/pluviometer");
  const took = () => tab.$eval(".search-box .took", (text) => text.textContent);
  check("a search says of how many results it shows some", await until(async () => /^20 of 2\d · /.test(await took())), await took());
  check("and that filters count these alone", await until(() => tab.$eval(".cut", (text) => /20 of 2\d\..*filters count these alone/.test(text.textContent))));
}

/** Notes about a source that changed, about one that did not, and about none; one more of each. */
const SOURCES = { stale: "changed", fresh: "kept", untracked: null };

async function freshness(browser) {
  const files = { "src/changed.rs": "1\n", "src/kept.rs": "1\n" };
  Object.entries(SOURCES).forEach(([level, source], n) => {
    const properties = source ? `---\nsource_refs: [src/${source}.rs]\n---\n` : "";
    for (let copy = 0; copy <= n; copy++) files[`${level} ${copy}.md`] = `${properties}About the hygrometer.\n`;
  });
  const place = written(files);
  commit(place, "2024-01-01T00:00:00Z");
  writeFileSync(join(place.vault, "src/changed.rs"), "2\n");
  commit(place, "2024-02-01T00:00:00Z");
  const { tab, ask, faults, close } = await explorer(browser, place);
  const { answer } = await ask("/api/call/ubp_search", { query: "hygrometer", limit: 20 });
  const of = (level) => answer.results.filter((page) => page.staleness === level);
  const titles = (pages) => pages.map((page) => page.title).sort().join();
  const counts = Object.keys(SOURCES).map((level) => [level, of(level).length]);
  check("the server knows notes of each freshness", counts.every(([, count], n) => count === n + 1), counts);
  await visit(tab, "#/search/hygrometer");
  const names = () => tab.$$eval(".result .name", (rows) => rows.map((row) => row.textContent).sort().join());
  const facet = (level) => `.facets section:has(h2:text-is("Freshness")) button:has(span:text-is("${level}"))`;
  for (const [level, count] of counts) {
    const counted = await until(() => tab.$eval(`${facet(level)} .count`, (number) => number.textContent));
    check(`the facet counts what is ${level}`, counted === String(count), [counted, count]);
    await tab.click(facet(level));
    check(`results are narrowed to what is ${level}`, await until(async () => (await names()) === titles(of(level))), await names());
    await tab.click(facet(level));
    check("and come back", await until(async () => (await names()) === titles(answer.results)), await names());
  }
  check("search by freshness: the console is empty", !faults.length, faults);
  await close();
}
