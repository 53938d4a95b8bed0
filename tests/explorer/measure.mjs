// How fast the picture is: measure.mjs BINARY MODULES PROFILE EXAMPLE_VAULT [PAGE]
//
// For the example vault and for 1k, 10k and 50k notes: a tab that opens at the graph, until the first picture, at the first visit and
// later; frames a second while the picture is dragged; a keystroke in the search until its results; transfer and memory; Lighthouse's
// score for accessibility. Beside it what a page would otherwise do: lay the same graph out itself, as note programs do, here by
// d3-force with its defaults and without any drawing. The last column has the budget of a row and whether it is met. The table goes
// to the place for it in PAGE, else to the output. SIZES=1000,10000 measures others.
import { createRequire } from "node:module";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { accessibility } from "./lighthouse.mjs";
import { copied, launch, modules, open, page, stop, until } from "./session.mjs";

const [profile, exampleVault, target] = process.argv.slice(4);
// Making vectors takes an hour at the largest size, and shares the processor with what is measured.
process.env.QUIPU_EMBEDDING_PROVIDER = "none";

/** Notes in groups, most links inside a group: the shape of real vaults. */
function generate(vault, notes) {
  let seed = 7;
  const random = (below) => (seed = (seed * 1103515245 + 12345) % 2147483648) % below;
  const group = Math.max(20, Math.round(Math.sqrt(notes) * 2));
  for (let n = 0; n < notes; n++) {
    const own = Math.floor(n / group);
    const folder = join(vault, `group-${own}`);
    if (n % group === 0) mkdirSync(folder, { recursive: true });
    const links = Array.from({ length: 3 }, (_, at) => {
      const inside = Math.min(notes - 1, own * group + random(Math.min(group, 1 + random(group))));
      return `[[n${at === 2 && random(4) === 0 ? random(notes) : inside}]]`;
    });
    writeFileSync(join(folder, `n${n}.md`), `# Note ${n}\n\nText of note ${n}. ${links.join(" ")}\n`);
  }
}

const percentile = (times, part) => [...times].sort((a, b) => a - b)[Math.floor(times.length * part)];
const ms = (value) => (value < 1000 ? `${Math.round(value)} ms` : `${(value / 1000).toFixed(1)} s`);
const both = (times) => `${ms(percentile(times, 0.5))} / ${ms(percentile(times, 0.95))}`;
/** A value with its text, for a budget. */
const timed = (value) => ({ value, text: ms(value) });
const kb = (bytes) => `${Math.round(bytes / 1000)} KB`;

/** Megabytes of JavaScript that are in use behind a collection. */
async function heap(tab) {
  const debug = await tab.context().newCDPSession(tab);
  await debug.send("HeapProfiler.collectGarbage");
  const { usedSize } = await debug.send("Runtime.getHeapUsage");
  return `${Math.round(usedSize / 1e6)} MB`;
}

/** A tab with an empty cache at the graph, and the times from the start of the navigation to the frame behind the first picture, and
 * to that with the layout: the first of a large graph is a draft. */
async function opened(browser, base, token) {
  const { page: tab, context } = await page(browser);
  await tab.addInitScript((token) => sessionStorage.setItem("quipu.session", token), token);
  await tab.goto(`${base}/#/graph`);
  const picture = await tab.evaluate(async () => {
    while (!document.querySelector("[data-drawn]")) await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
    return performance.now();
  });
  const settled = await tab.evaluate(async () => {
    while (!window.quipuScene.model.data.settled) await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
    return performance.now();
  });
  return { tab, context, picture, settled };
}

const DRAG_MS = 4_000;

/** The times of frames while the picture is dragged around, the script in each, and how many there were in a second of the clock. */
async function dragged(tab) {
  await tab.evaluate(() => {
    const { sigma } = window.quipuScene;
    window.frames_ = { times: [], scripts: [] };
    let begun = 0;
    sigma.on("beforeRender", () => (begun = performance.now()));
    sigma.on("afterRender", () => window.frames_.scripts.push(performance.now() - begun));
    let last = performance.now();
    const tick = (now) => {
      window.frames_.times.push(now - last);
      last = now;
      window.ticking = requestAnimationFrame(tick);
    };
    window.ticking = requestAnimationFrame(tick);
  });
  const middle = [760, 420];
  await tab.mouse.move(...middle);
  await tab.mouse.down();
  const start = performance.now();
  const before = await tab.evaluate(() => window.frames_.times.length);
  const end = Date.now() + DRAG_MS;
  for (let n = 0; Date.now() < end; n++) await tab.mouse.move(middle[0] + 150 * Math.sin(n / 15), middle[1] + 150 * Math.cos(n / 15));
  const { times, scripts } = await tab.evaluate(() => (cancelAnimationFrame(window.ticking), window.frames_));
  const seconds = (performance.now() - start) / 1000;
  await tab.mouse.up();
  // The first frames are those before the hand moves.
  const moved = times.slice(before);
  return { times: moved, scripts, perSecond: Math.round(moved.length / seconds) };
}

const QUERIES = ["text", "text of", "note 7", "note 71", "note 712", "of note", "group", "text note 3", "note 31", "note 310"];

/** From the input of a letter to the frame with its results. A letter that follows another within 80 ms waits; these do not. */
async function keystrokes(tab) {
  await tab.evaluate(() => (location.hash = "#/search"));
  await tab.waitForSelector(".search-box input");
  return tab.evaluate(async (queries) => {
    const input = document.querySelector(".search-box input");
    const times = [];
    for (const query of [...queries, ...queries.map((query) => `${query}1`)]) {
      const start = performance.now();
      input.value = query;
      input.dispatchEvent(new InputEvent("input", { bubbles: true }));
      while (document.querySelector(".results").dataset.query !== query) await new Promise(requestAnimationFrame);
      times.push(performance.now() - start);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    return times.slice(2);
  }, QUERIES);
}

const transferred = (tab) =>
  tab.evaluate(() => {
    const all = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
    const graph = all.find((entry) => entry.name.endsWith("/api/graph"));
    const page = all.filter((entry) => !entry.name.includes("/api/")).reduce((sum, entry) => sum + entry.encodedBodySize, 0);
    return { page, graph: graph.encodedBodySize, took: graph.duration };
  });

const require = createRequire(`${modules}/`);
const { outputFiles } = await require("esbuild").build({
  stdin: { contents: `import * as force from "d3-force"; window.force = force;`, resolveDir: modules },
  bundle: true, format: "iife", write: false, logLevel: "silent",
});

/** The same graph laid out in a page, until it rests. */
async function forceLayout(browser, graph) {
  const { page: tab, context } = await page(browser);
  await tab.addScriptTag({ content: outputFiles[0].text });
  const steps = await tab.evaluate(({ size, edges }) => {
    const { forceSimulation, forceLink, forceManyBody, forceCenter } = window.force;
    const nodes = Array.from({ length: size }, (_, index) => ({ index }));
    const links = Array.from({ length: edges.length / 3 }, (_, at) => ({ source: edges[3 * at], target: edges[3 * at + 1] }));
    const simulation = forceSimulation(nodes).force("link", forceLink(links)).force("charge", forceManyBody()).force("centre", forceCenter()).stop();
    const times = [];
    while (simulation.alpha() >= simulation.alphaMin()) {
      const start = performance.now();
      simulation.tick();
      times.push(performance.now() - start);
    }
    window.kept = simulation;
    return times;
  }, graph);
  const memory = await heap(tab);
  await context.close();
  return { steps, memory };
}

const renderer = (tab) =>
  tab.evaluate(() => {
    const gl = document.createElement("canvas").getContext("webgl");
    return gl.getParameter(gl.getExtension("WEBGL_debug_renderer_info").UNMASKED_RENDERER_WEBGL);
  });

/** What is wanted of a row: by the name of a column, or of each. `more`: at least this. */
const BUDGETS = {
  "page, compressed": { of: () => 250_000, text: "≤ 250 KB" },
  "first visit: until the picture": { of: (name) => ({ example: 1_000, "10,000": 2_000, "50,000": 4_000 })[name], text: "≤ 1 s example, 2 s 10,000, 4 s 50,000" },
  "later visits: until the picture": { of: (name) => ({ example: 1_000, "10,000": 2_000, "50,000": 4_000 })[name], text: "the same" },
  "frames a second while dragging": { of: (name) => ({ example: 60, "1,000": 60, "10,000": 60, "50,000": 30 })[name], text: "≥ 60 to 10,000, 30 50,000", more: true },
  "keystroke to results, median": { of: () => 60, text: "≤ 60 ms" },
  "accessibility by Lighthouse, lowest view": { of: () => 95, text: "≥ 95", more: true },
};

/** The budget of a row, and the columns that miss it. */
function verdict(row, columns) {
  const budget = BUDGETS[row];
  if (!budget) return "";
  const missed = columns.filter(({ name, rows }) => {
    const [limit, value] = [budget.of(name), rows[row]?.value];
    return limit !== undefined && value !== undefined && value !== null && (budget.more ? value < limit : value > limit);
  });
  const isMeasured = columns.some(({ name, rows }) => budget.of(name) !== undefined && rows[row]?.value != null);
  return `${budget.text}: ${!isMeasured ? "not measured" : missed.length ? `**missed** (${missed.map(({ name }) => name).join("; ")})` : "met"}`;
}

/** One column of the table: what it is called, and what was measured. With a query accessibility too. */
async function measured(browser, name, place, query = "") {
  const { base, secret, child } = await open(place);
  const { token } = await (await fetch(`${base}/api/session`, { method: "POST", body: JSON.stringify({ secret }) })).json();
  const ask = async (path) => (await fetch(base + path, { headers: { authorization: `Bearer ${token}` } })).json();
  if (!(await until(async () => (await ask("/api/status")).indexed, 1_800_000))) throw new Error("the vault is not indexed after half an hour");
  const first = await opened(browser, base, token);
  const { took: answer } = await transferred(first.tab);
  await first.context.close();
  const { tab, context, picture } = await opened(browser, base, token);
  const loaded = await transferred(tab);
  const { times, scripts, perSecond } = await dragged(tab);
  const memory = await heap(tab);
  const drawnBy = await renderer(tab);
  const typed = await keystrokes(tab);
  await context.close();
  const graph = await ask("/api/graph");
  const judged = query ? await accessibility(base, token, graph.notes.id[0], query) : null;
  await stop(child);
  const force = await forceLayout(browser, { size: graph.x.length, edges: graph.edges });
  const lowest = judged && Math.min(...judged.scores.map(({ score }) => score));
  const rows = {
    links: { text: (graph.edges.length / 3).toLocaleString("en") },
    "page, compressed": { value: loaded.page, text: kb(loaded.page) },
    "graph, compressed": { text: kb(loaded.graph) },
    "first visit: until the picture": timed(first.picture),
    "of this, the answer of the server": timed(answer),
    "first visit: until the layout": timed(first.settled),
    "later visits: until the picture": timed(picture),
    "frames a second while dragging": { value: perSecond, text: String(perSecond) },
    "frame while dragging, median / 95 %": { text: both(times) },
    "script of a frame, median / 95 %": { text: both(scripts) },
    "keystroke to results, median": timed(percentile(typed, 0.5)),
    "keystroke to results, 95 %": timed(percentile(typed, 0.95)),
    "memory of the page": { text: memory },
    "accessibility by Lighthouse, lowest view": { value: lowest, text: lowest === null ? "–" : String(lowest) },
    "force layout in the page: one step, median": timed(percentile(force.steps, 0.5)),
    "until it rests": timed(force.steps.reduce((sum, step) => sum + step, 0)),
    "its memory": { text: force.memory },
  };
  return { name, notes: graph.notes.id.length, rows, drawnBy, judged };
}

/** All views with one score in one sentence, else each. */
function judgement({ version, scores }) {
  const [lowest, most] = [Math.min, Math.max].map((pick) => pick(...scores.map(({ score }) => score)));
  const each = scores.map(({ view, score }) => (lowest === most ? view : `${view} ${score}`)).join(", ");
  return `Accessibility by Lighthouse ${version}${lowest === most ? `: ${lowest} of 100 for each view` : ", of 100"} (${each}).`;
}

function generated(notes) {
  const place = copied(null);
  mkdirSync(place.vault, { recursive: true });
  generate(place.vault, notes);
  return place;
}

const browser = await launch();
const load = Math.round(loadavg()[0]);
const columns = [];
const measure = async (...column) => {
  columns.push(await measured(browser, ...column));
  console.error(JSON.stringify(columns.at(-1)));
};
await measure("example", copied(exampleVault), "thermometer");
for (const notes of (process.env.SIZES ?? "1000,10000,50000").split(",").map(Number)) await measure(notes.toLocaleString("en"), generated(notes));
await browser.close();
const line = (cells) => `| ${cells.join(" | ")} |`;
const { judged } = columns[0];
const table = [
  `Measured by \`cargo xtask explorer --measure --write\` in headless Chromium on ${cpus().length} cores of ${cpus()[0].model.trim()}, with the ${profile} build, without search by`,
  `meaning. Drawn without a graphics card, by ${columns[0].drawnBy}. Other programs on the machine: load average ${load}. The example vault has ${columns[0].notes} notes.`,
  "",
  line(["notes", ...columns.map(({ name }) => name), "budget"]),
  line(["---", ...columns.map(() => "--:"), "---"]),
  ...Object.keys(columns[0].rows).map((row) => line([row, ...columns.map(({ rows }) => rows[row].text), verdict(row, columns)])),
  "",
  "Over 20,000 links, and where a frame takes longer than 40 ms, lines are left out while the picture is dragged (`hideEdgesOnMove` of sigma.js);",
  "the frames of those columns are without lines.",
  "",
  judged ? judgement(judged) : "Accessibility was not measured: Lighthouse is not installed.",
].join("\n");
if (target) {
  const [start, end] = ["<!-- figures -->\n", "\n<!-- end of figures -->"];
  const text = readFileSync(target, "utf8");
  if (!text.includes(start) || !text.includes(end)) throw new Error(`${target} has no place for the figures`);
  writeFileSync(target, `${text.split(start)[0]}${start}${table}${end}${text.split(end)[1]}`);
} else console.log(table);
