// How fast the picture is: measure.mjs BINARY MODULES
//
// For 1k, 10k and 50k notes: a tab that opens at the graph, until the first picture; frame times while the camera moves; transfer and
// memory. Beside it what a page would otherwise do: lay the same graph out itself, as note programs do, here by d3-force with its
// defaults and without any drawing. SIZES=1000,10000 measures others.
import { createRequire } from "node:module";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { copied, launch, modules, open, page, stop, until } from "./session.mjs";

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
const kb = (bytes) => `${Math.round(bytes / 1000)} KB`;

/** Megabytes of JavaScript that are in use behind a collection. */
async function heap(tab) {
  const debug = await tab.context().newCDPSession(tab);
  await debug.send("HeapProfiler.collectGarbage");
  const { usedSize } = await debug.send("Runtime.getHeapUsage");
  return `${Math.round(usedSize / 1e6)} MB`;
}

/** From the start of the navigation to the frame behind the first picture, in a tab with an empty cache. */
async function firstPicture(browser, base, token) {
  const { page: tab, context } = await page(browser);
  await tab.addInitScript((token) => sessionStorage.setItem("quipu.session", token), token);
  await tab.goto(`${base}/#/graph`);
  const picture = await tab.evaluate(async () => {
    while (!document.querySelector("[data-drawn]")) await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
    return performance.now();
  });
  const frames = (await tab.evaluate(() => window.quipuScene.measure(125))).slice(5);
  const loaded = await tab.evaluate(() => {
    const all = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
    const graph = all.find((entry) => entry.name.endsWith("/api/graph"));
    const page = all.filter((entry) => !entry.name.includes("/api/")).reduce((sum, entry) => sum + entry.encodedBodySize, 0);
    return { page, graph: graph.encodedBodySize };
  });
  const memory = await heap(tab);
  await context.close();
  return { picture, frames, loaded, memory };
}

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

const browser = await launch();
console.log("| notes | links | page and graph, compressed | layout by the server, once | first picture | frame while panning, median / 95 % | script of a frame, median / 95 % | memory of the page | force layout in the page: one step, median | until it rests | its memory |");
console.log("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
for (const notes of (process.env.SIZES ?? "1000,10000,50000").split(",").map(Number)) {
  const place = copied(null);
  mkdirSync(place.vault, { recursive: true });
  generate(place.vault, notes);
  const { base, secret, child } = await open(place);
  const { token } = await (await fetch(`${base}/api/session`, { method: "POST", body: JSON.stringify({ secret }) })).json();
  const ask = async (path) => (await fetch(base + path, { headers: { authorization: `Bearer ${token}` } })).json();
  // Vectors are made in the background: they would share the processor with what is measured.
  const isIdle = async () => {
    const { indexed, embedded, to_embed } = await ask("/api/status");
    return indexed && embedded === to_embed;
  };
  if (!(await until(isIdle, 1_800_000))) throw new Error("the vault is not indexed after half an hour");
  const start = performance.now();
  const graph = await ask("/api/graph");
  const layout = performance.now() - start;
  const { picture, frames, loaded, memory } = await firstPicture(browser, base, token);
  await stop(child);
  const force = await forceLayout(browser, { size: graph.x.length, edges: graph.edges });
  const sum = force.steps.reduce((sum, step) => sum + step, 0);
  console.log(
    `| ${notes.toLocaleString("en")} | ${(graph.edges.length / 3).toLocaleString("en")} | ${kb(loaded.page)} + ${kb(loaded.graph)} | ${ms(layout)} | ${ms(picture)} | ${both(frames.map(({ frame }) => frame))} | ${both(frames.map(({ script }) => script))} | ${memory} | ${ms(percentile(force.steps, 0.5))} | ${ms(sum)} | ${force.memory} |`,
  );
}
await browser.close();
