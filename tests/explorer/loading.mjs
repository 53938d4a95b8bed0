// What is there before the rest: skeletons, and the draft of a large graph. What is left out of long lists. And a server that offers
// agents only some tools.
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { agent, check, commit, explorer, serious, served, until, visit, written } from "./session.mjs";

/** So many that their layout takes longer than an answer waits. */
const LARGE = 10_000;

/** Something that others wait for. */
function gate() {
  let open;
  const opened = new Promise((resolve) => (open = resolve));
  return { opened, open };
}

export async function loading(browser) {
  await skeletons(browser);
  await draft(browser);
  await whileAgentsWrite(browser);
  await fewToolsets(browser);
  await longLists(browser);
}

/** How visible a skeleton is, some time after it came. */
const opacity = (tab, selector, ms) =>
  tab.$eval(
    selector,
    (skeleton, ms) => {
      const [appear] = skeleton.getAnimations();
      appear.pause();
      appear.currentTime = ms;
      return Number(getComputedStyle(skeleton).opacity);
    },
    ms,
  );

async function skeletons(browser) {
  const { tab, faults, close } = await explorer(browser, written({ "one.md": "[[two]]\n", "two.md": "Text.\n" }));
  let held = gate();
  await tab.route("**/api/{graph,call/ubp_list_pages}", async (route) => {
    await held.opened;
    await route.continue();
  });
  await tab.reload();
  await tab.waitForSelector(".view.home .skeleton");
  check("home: its skeleton is invisible for 300 ms", (await opacity(tab, ".home .skeleton", 299)) === 0 && (await opacity(tab, ".home .skeleton", 600)) === 1);
  await tab.evaluate(() => (location.hash = "#/graph"));
  await tab.reload();
  await tab.waitForSelector(".graph .skeleton");
  const text = () => tab.$eval(".graph-hint", (hint) => hint.textContent);
  check("graph: while it loads the page says what is done", await until(async () => (await text()) === "Laying out 2 notes…"), await text());
  check("graph: its skeleton is invisible for 300 ms", (await opacity(tab, ".graph-hint", 299)) === 0 && (await opacity(tab, ".graph-hint", 600)) === 1);
  const found = await serious(tab);
  check("graph, loading: axe finds nothing serious", !found.length, found);
  held.open();
  check("graph: the picture replaces the skeleton", await until(() => tab.evaluate(() => document.querySelector("[data-drawn]") && !document.querySelector("main .skeleton, main [aria-busy=true]"))));
  check("loading: the console is empty", !faults.length, faults);
  await tab.unroute("**/api/{graph,call/ubp_list_pages}");

  let isAway = true;
  await tab.route("**/assets/graph-*.js", (route) => (isAway ? route.abort() : route.continue()));
  await tab.reload();
  check("graph: a drawing library that does not come is an error", await until(() => tab.$('main [role=alert]:has-text("The graph cannot be loaded")')));
  isAway = false;
  await tab.reload();
  check("graph: and it comes later", await until(() => tab.$("[data-drawn]")));
  await close();
}

/** A large graph is answered with a draft; the page takes over the layout when it is there. */
async function draft(browser) {
  const note = (n) => [`${n % 100}/note ${n}.md`, `[[note ${(n * 7 + 1) % LARGE}]] [[note ${(n * 13 + 5) % LARGE}]]\n`];
  const place = written(Object.fromEntries(Array.from({ length: LARGE }, (_, n) => note(n))));
  const { tab, faults, ask, enter, close } = await served(browser, place);
  const first = await ask("/api/graph");
  check("a large graph is answered before it is laid out", first.settled === false && first.x.length === LARGE, [first.settled, first.x?.length]);
  const held = gate();
  let asked = 0;
  await tab.route("**/api/graph", async (route) => {
    if (!asked++) return route.fulfill({ json: first });
    await held.opened;
    await route.continue();
  });
  // The event that the layout is there comes after the draft, however fast the server is.
  const drawn = gate();
  await tab.route("**/api/events", async (route) => {
    await drawn.opened;
    await route.continue();
  });
  await enter();
  await tab.evaluate(() => (location.hash = "#/graph"));
  await tab.waitForSelector("[data-drawn]");
  const hint = () => tab.$eval(".graph-hint", (hint) => hint.textContent);
  check("the draft is shown, and the page says so", /^Laying out (10,000|the) notes…$/.test(await hint()) && (await tab.$(".graph[aria-busy=true]")) !== null, await hint());
  drawn.open();
  check("the page asks again by itself", await until(async () => asked > 1, 60_000), asked);
  held.open();
  const settled = () => tab.evaluate(() => window.quipuScene.model.data.settled && !document.querySelector("main [aria-busy=true]"));
  check("the layout takes the place of the draft", await until(settled, 60_000));
  const [x, communities] = await tab.evaluate(() => [window.quipuScene.model.data.x, window.quipuScene.model.data.community]);
  check("nodes have moved, and their groups are the same", String(x) !== String(first.x) && String(communities) === String(first.community));
  check("the hint is gone", (await hint()) === "", await hint());
  check("draft: the console is empty", !faults.length, faults);
  await close();
}

/** The graph follows an agent that writes without a pause. */
async function whileAgentsWrite(browser) {
  const { tab, ask, close } = await explorer(browser, written({ "one.md": "[[two]]\n", "two.md": "Text.\n" }), "--write");
  await visit(tab, "#/graph");
  const size = () => tab.evaluate(() => window.quipuScene.model.size);
  const before = await size();
  let grown = false;
  for (let n = 0; n < 80 && !grown; n++) {
    await ask("/api/call/create_entity", { name: `Written ${n}`, entity_type: "Event", force: true });
    await new Promise((resolve) => setTimeout(resolve, 100));
    grown = (await size()) > before;
  }
  check("the graph is read again while an agent writes without a pause", grown, await size());
  await close();
}

/** Toolsets are for agents: the page has all tools. */
async function fewToolsets(browser) {
  const place = written({ "one.md": "---\ntags: [red]\n---\nAbout [[two]].\n", "two.md": "# Two\n\nText.\n" });
  agent(place, "create_entity", { name: "Station clock", entity_type: "Device" });
  const { tab, faults, enter, close } = await served(browser, place, "--toolsets", "essential");
  await enter();
  const views = { home: ["#/", /Most central notes.*Two/s], graph: ["#/graph", /Groups/], search: ["#/search/text", /Two/], note: ["#/note/two.md", /Backlinks.*One/s], memory: ["#/memory", /Station clock/], duplicates: ["#/memory/duplicates", /No two entities/], changes: ["#/changes", /History.*Station clock/s], health: ["#/health", /Latency by tool/] };
  for (const [view, [address, text]] of Object.entries(views)) {
    await visit(tab, address);
    const shown = () => tab.$eval("main", (main) => main.textContent);
    check(`essential tools for agents, ${view}: it is complete`, await until(async () => text.test(await shown())), await shown());
    check(`essential tools for agents, ${view}: nothing failed`, !(await tab.$("main [role=alert]")), await shown());
  }
  check("essential tools for agents: the console is empty", !faults.length, faults);
  await close();
}

/** What is left out is counted, and can be shown. */
async function longLists(browser) {
  const lines = (count, line) => Array.from({ length: count }, (_, n) => line(n)).join("\n");
  const place = written({
    "long.md": `---\n${lines(15, (n) => `property${n}: value`)}\n---\n${lines(65, (n) => `## Part ${n}\n`)}\n`,
    "stale.md": "---\ntags: [code]\nsource_refs: [src/code.rs]\n---\nAbout the code.\n",
    "src/code.rs": "fn main() {}\n",
  });
  commit(place, "2024-01-01T00:00:00Z");
  appendFileSync(join(place.vault, "src/code.rs"), "// changed\n");
  commit(place, "2024-02-01T00:00:00Z");
  const observations = Array.from({ length: 55 }, (_, n) => `It was seen on day ${n}.`);
  for (const name of ["Barometer", "Barometers"]) agent(place, "create_entity", { name, entity_type: "Device", observations, force: true });
  const { tab, close } = await explorer(browser, place, "--write");
  await visit(tab, "#/note/long.md");
  const parts = { properties: ["dt", 15, "Show 3 more"], outline: ["button:not(.more)", 65, "Show 5 more"] };
  for (const [part, [row, all, button]] of Object.entries(parts)) {
    await tab.click(`.${part} button:text-is("${button}")`);
    check(`${part}: what is left out is counted and can be shown`, await until(async () => (await tab.$$(`.${part} ${row}`)).length === all), (await tab.$$(`.${part} ${row}`)).length);
  }
  await visit(tab, "#/search/tag:code");
  check("a note found by tag has its freshness", await until(() => tab.$('.result .mark:text-is("Stale")')));
  await visit(tab, "#/");
  const counted = () => tab.$eval('.counts a:has-text("ossible duplicates") .number', (number) => number.textContent);
  await until(async () => (await counted()) === "1");
  await visit(tab, "#/memory/duplicates");
  const pairs = (await tab.$$(".pair-head")).length;
  check("Home counts as many duplicates as the page shows", (await tab.$eval(".view.memory", (view) => view.textContent)).includes("1 pair.") && pairs === 1, pairs);
  await tab.click(".pair-head");
  check("observations that are not compared are counted", await until(() => tab.$eval(".compared", (view) => /and 5 older observations/.test(view.textContent))));
  await close();
}
