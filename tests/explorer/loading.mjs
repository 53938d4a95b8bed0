// What is there before the rest: skeletons, and the draft of a large graph. And a server that offers agents only
// some tools.
import { agent, check, explorer, serious, served, until, visit, written } from "./session.mjs";

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
  await enter();
  await tab.evaluate(() => (location.hash = "#/graph"));
  await tab.waitForSelector("[data-drawn]");
  const hint = () => tab.$eval(".graph-hint", (hint) => hint.textContent);
  check("the draft is shown, and the page says so", (await hint()) === "Laying out 10,000 notes…" && (await tab.$(".graph[aria-busy=true]")) !== null, await hint());
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
