// How fast the picture is: measure.mjs BINARY MODULES
//
// For 1k, 10k and 50k notes: from the click to the first picture, with the server's layout made and kept; frame times while the camera
// moves; and beside it what a page would otherwise do: lay the same graph out itself, step by step, as note programs do.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { copied, launch, open, page, stop, until } from "./session.mjs";

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

const sorted = (times) => [...times].sort((a, b) => a - b);
const percentile = (times, part) => sorted(times)[Math.floor(times.length * part)];
const browser = await launch();
console.log("| notes | links | layout, first time | graph JSON | first picture | frame median / p95 while panning | layout in the page, one step | page memory |");
console.log("|---|---|---|---|---|---|---|---|");
for (const notes of (process.env.SIZES ?? "1000,10000,50000").split(",").map(Number)) {
  const place = copied(null);
  mkdirSync(place.vault, { recursive: true });
  generate(place.vault, notes);
  const { base, secret, child } = await open(place);
  const { page: tab, context } = await page(browser);
  await tab.goto(`${base}/#k=${secret}`);
  await tab.waitForSelector(".frame");
  const ask = (path) =>
    tab.evaluate(async (path) => {
      const start = performance.now();
      const response = await fetch(path, { headers: { authorization: `Bearer ${sessionStorage.getItem("quipu.session")}` } });
      const text = await response.text();
      return { ms: performance.now() - start, bytes: text.length, text: path.endsWith("status") ? text : "", edges: path.endsWith("graph") ? JSON.parse(text).edges.length / 3 : 0 };
    }, path);
  await until(async () => JSON.parse((await ask("/api/status")).text).indexed, 600_000);
  const first = await ask("/api/graph");
  const again = await ask("/api/graph");
  // A fresh tab, as a person opens it: everything from the click on.
  await tab.evaluate(() => (location.hash = "#/health"));
  await tab.reload();
  await tab.waitForSelector(".frame");
  const picture = await tab.evaluate(async () => {
    const start = performance.now();
    location.hash = "#/graph";
    while (!document.querySelector("[data-drawn]")) await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
    return performance.now() - start;
  });
  const frames = await tab.evaluate(() => window.quipuScene.measure(60));
  const memory = await tab.evaluate(() => Math.round((performance.memory?.usedJSHeapSize ?? 0) / 1e6));
  // One step of a plain force layout with the same repulsion, all pairs by grid, as a page without the server would run at each frame.
  const step = await tab.evaluate(() => {
    const { x, y, edges } = window.quipuScene.model.data;
    const start = performance.now();
    const cell = 100;
    const grid = new Map();
    for (let n = 0; n < x.length; n++) {
      const key = `${Math.floor(x[n] / cell)},${Math.floor(y[n] / cell)}`;
      (grid.get(key) ?? grid.set(key, []).get(key)).push(n);
    }
    const force = new Float64Array(2 * x.length);
    for (let n = 0; n < x.length; n++) {
      const [column, row] = [Math.floor(x[n] / cell), Math.floor(y[n] / cell)];
      for (let dx = -1; dx <= 1; dx++) {
        for (let dy = -1; dy <= 1; dy++) {
          for (const m of grid.get(`${column + dx},${row + dy}`) ?? []) {
            const [ex, ey] = [x[n] - x[m], y[n] - y[m]];
            const square = ex * ex + ey * ey || 1;
            force[2 * n] += ex / square;
            force[2 * n + 1] += ey / square;
          }
        }
      }
    }
    for (let at = 0; at < edges.length; at += 3) {
      const [a, b] = [edges[at], edges[at + 1]];
      force[2 * a] += x[b] - x[a];
      force[2 * a + 1] += y[b] - y[a];
    }
    return performance.now() - start;
  });
  const ms = (value) => (value < 1000 ? `${Math.round(value)} ms` : `${(value / 1000).toFixed(1)} s`);
  console.log(
    `| ${notes} | ${first.edges} | ${ms(first.ms)} | ${Math.round(again.bytes / 1000)} KB in ${ms(again.ms)} | ${ms(picture)} | ${ms(percentile(frames.slice(5), 0.5))} / ${ms(percentile(frames.slice(5), 0.95))} | ${ms(step)} | ${memory} MB |`,
  );
  await context.close();
  await stop(child);
}
await browser.close();
