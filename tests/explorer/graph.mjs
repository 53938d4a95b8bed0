// The graph: types of links, the legend as a filter, paths, what is around a node, time, and labels that do not overlap.
import { utimesSync } from "node:fs";
import { join } from "node:path";
import { check, explorer, serious, until, visit, written } from "./session.mjs";

const FILES = {
  "one.md": "---\ntags: [red, blue]\n---\nIt needs [[two|depends_on]] and breaks [[three|conflicts_with]]. See [[six]].\n",
  "two.md": "---\ntags: [red]\n---\nDoes [[four|implements]], [[five|extends]] and [[one]].\n",
  "three.md": "---\ntags: [blue]\n---\nSee [[five]].\n",
  "four.md": "Nothing.\n",
  "five.md": "Nothing.\n",
  "six.md": "Nothing.\n",
  "alone.md": "---\ntags: [red]\n---\nNo link.\n",
};

/** Where a node is on the screen. */
const place = (tab, path) =>
  tab.evaluate((path) => {
    const { sigma, model } = window.quipuScene;
    const node = model.places.get(path);
    const { x, y } = sigma.graphToViewport({ x: model.data.x[node], y: model.data.y[node] });
    const own = document.querySelector(".canvas").getBoundingClientRect();
    return [x + own.left, y + own.top];
  }, path);
const click = async (tab, path, options) => tab.mouse.click(...(await place(tab, path)), options);
const state = (tab, read) => tab.evaluate(`(() => { const scene = window.quipuScene; const { model } = scene; return (${read}); })()`);
const rested = (tab) => tab.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(resolve)))));

/** Labels that share a place, in the picture as it is. */
export const overlapping = (tab) =>
  tab.evaluate(() => {
    const { written } = window.quipuScene.overlay;
    const meet = ([ax, ay, aw, ah], [bx, by, bw, bh]) => ax < bx + bw && bx < ax + aw && ay < by + bh && by < ay + ah;
    return written.flatMap((a, n) => written.slice(n + 1).filter((b) => meet(a.box, b.box)).map((b) => [a.text, b.text]));
  });

export async function graphView(browser) {
  const place = written(FILES);
  const old = new Date("2020-01-01");
  for (const name of ["four.md", "five.md", "six.md", "alone.md"]) utimesSync(join(place.vault, name), old, old);
  const { tab, faults, close } = await explorer(browser, place);
  await visit(tab, "#/graph");
  await typedLinks(tab);
  await filters(tab);
  await paths(tab);
  await neighbourhoods(tab);
  await shapes(tab);
  await address(tab);
  check("graph: the console is empty", !faults.length, faults);
  await close();
}

async function typedLinks(tab) {
  const looks = await state(tab, `scene.graph.mapEdges((key, edge) => [model.data.link_types[model.data.edges[3 * key + 2]], edge.color, edge.size])`);
  const of = (type) => looks.filter(([name]) => name === type).map(([, colour, size]) => `${colour} ${size}`);
  const typed = ["depends_on", "conflicts_with", "implements", "extends"];
  check("each type of link has its own colour, and plain links are thinner", new Set(typed.flatMap(of)).size === 4 && of("references").every((look) => look.endsWith(" 1")), looks);
  const rows = await tab.$$eval(".legend .links li .name", (names) => names.map((name) => name.textContent));
  check("the legend names the types of links", rows.length === 5 && rows.includes("depends on"), rows);
  const shown = () => state(tab, `scene.graph.filterEdges((key, edge) => !edge.hidden).length`);
  const all = await shown();
  await tab.click('.legend .links li button[title="references"]');
  check("a type of links can be hidden", await until(async () => (await shown()) === 4), [all, await shown()]);
  await tab.hover('.legend .links li:has(button[title="extends"])');
  await tab.click('.legend button[aria-label="Only extends"]');
  check("only one type of links can be shown", await until(async () => (await shown()) === 1), await shown());
  await tab.click("text=Clear filters");
  await until(async () => (await shown()) === all);
  await visit(tab, "#/graph/note/one.md");
  const names = () => state(tab, `scene.overlay.written.map(({ text }) => text)`);
  check("the links of a selected node have the names of their types", await until(async () => (await names()).filter((name) => ["depends on", "conflicts with"].includes(name)).length === 2), await names());
  await visit(tab, "#/graph");
}

async function filters(tab) {
  const nodes = () => state(tab, `scene.graph.filterNodes((key, node) => !node.hidden).map((key) => model.data.notes.id[key]).sort().join()`);
  await tab.click('.segments button:has-text("Tag")');
  const counts = await tab.$$eval(".legend ul:not(.links ul) li", (rows) => Object.fromEntries(rows.map((row) => [row.querySelector(".name").textContent, row.querySelector(".count").textContent])));
  check("a note counts under each of its tags", counts["#red"] === "3" && counts["#blue"] === "2" && counts["No tag"] === "3", counts);
  await tab.click('.legend button[title="#red"]');
  check("a note with a hidden tag and a shown one is shown", await until(async () => (await nodes()) === "five.md,four.md,one.md,six.md,three.md"), await nodes());
  await tab.click("text=Clear filters");
  await tab.hover('.legend li:has(button[title="#blue"])');
  await tab.click('.legend button[aria-label="Only #blue"]');
  check("only one tag can be shown", await until(async () => (await nodes()) === "one.md,three.md"), await nodes());
  await tab.click("text=Clear filters");
  await tab.click('.segments button:has-text("Groups")');
  await tab.fill(".slider input", "60");
  check("the time filter leaves what changed lately", await until(async () => (await nodes()) === "one.md,three.md,two.md"), await nodes());
  await tab.fill(".slider input", "0");
  await until(async () => (await nodes()).includes("alone.md"));
}

async function paths(tab) {
  const path = () => state(tab, `(scene.shown.path ?? []).map((node) => model.data.notes.id[node]).join(" ")`);
  const expected = "four.md two.md one.md three.md";
  await tab.click('button[aria-label="Show all"]');
  await rested(tab);
  await click(tab, "four.md");
  await until(() => tab.$(".inspector h2"));
  await rested(tab);
  await tab.keyboard.down("Shift");
  await click(tab, "three.md");
  await tab.keyboard.up("Shift");
  check("shift-click on a second node shows the path", await until(async () => (await path()) === expected), await path());
  check("the path is in the address", await tab.evaluate(() => location.hash.split("?")[0] === "#/graph/path/four.md/three.md"), tab.url());
  const hint = await tab.$eval(".graph-hint", (hint) => hint.textContent);
  check("and in words, with types and directions", /Path of 3 links.*← implements ←.*conflicts with →/.test(hint), hint);
  await tab.reload();
  await tab.waitForSelector("[data-drawn]");
  check("the path survives a reload", await until(async () => (await path()) === expected), await path());
  await visit(tab, "#/graph/note/six.md");
  await tab.click('.inspector button:has-text("Path to…")');
  await tab.waitForSelector('dialog[open][aria-label="Path to"] input:focus');
  check("path picker: axe finds nothing serious", !(await serious(tab)).length, await serious(tab));
  await tab.keyboard.type("five");
  await until(() => tab.$eval('dialog[open] [role=option][aria-selected=true] .name', (name) => name.textContent === "Five"));
  await tab.keyboard.press("Enter");
  check("the path picker takes a name", await until(async () => (await path()) === "six.md one.md two.md five.md" || (await path()) === "six.md one.md three.md five.md"), await path());
  await visit(tab, "#/graph/note/one.md");
  await tab.focus(".canvas");
  await tab.keyboard.press("f");
  check("f opens the path picker", await until(() => tab.$('dialog[open][aria-label="Path to"]')));
  await tab.keyboard.press("Escape");
  await visit(tab, "#/graph/path/one.md/alone.md");
  check("two nodes without a path are told of", await until(() => tab.$eval(".graph-hint", (hint) => hint.textContent.startsWith("No path between One and Alone"))));
  await visit(tab, "#/graph");
}

async function neighbourhoods(tab) {
  await tab.click('button[aria-label="Show all"]');
  await rested(tab);
  await tab.mouse.move(...(await place(tab, "two.md")));
  const lit = () => state(tab, `[...(scene.overlay.litNodes(scene.shown.hovered) ?? [])].map((node) => model.data.notes.id[node]).sort().join()`);
  check("hovering shows a node with its neighbours", await until(async () => (await lit()) === "five.md,four.md,one.md,two.md"), await lit());
  await tab.mouse.move(700, 110);
  await visit(tab, "#/graph/note/four.md");
  await tab.click("text=Only around it");
  const shown = () => state(tab, `scene.graph.filterNodes((key, node) => !node.hidden).map((key) => model.data.notes.id[key]).sort().join()`);
  check("the local graph has what is within two links", await until(async () => (await shown()) === "five.md,four.md,one.md,two.md"), await shown());
  await tab.click("text=Only around it");
  await tab.click('button[aria-label="Show all"]');
  await rested(tab);
  const unnamed = () => state(tab, `model.names.filter((name) => !scene.overlay.written.some(({ text }) => text === name))`);
  await visit(tab, "#/graph");
  check("each node of a small graph has its name", await until(async () => !(await unnamed()).length), await unnamed());
  check("labels do not overlap", !(await overlapping(tab)).length, await overlapping(tab));
}

/** What colours tell, shapes tell too. */
async function shapes(tab) {
  await visit(tab, "#/graph");
  for (const [by, wanted] of [["Tag", 2], ["Freshness", 4]]) {
    await tab.click(`.segments button:has-text("${by}")`);
    const rows = await tab.$$eval(".legend ul:not(.links ul) li .swatch path", (paths) => paths.map((path) => path.getAttribute("d")));
    check(`colours by ${by.toLowerCase()}: the rows of the legend have their own shapes`, new Set(rows.slice(0, wanted)).size === wanted, rows);
  }
  await tab.click('.segments button:has-text("Tag")');
  const drawn = () => state(tab, `scene.graph.mapNodes((key, node) => [model.data.notes.id[key], node.shape]).filter(([id]) => /^(one|two|three|four)/.test(id)).map((pair) => pair.join(" ")).sort().join()`);
  check("and each node the shape of its row", await until(async () => (await drawn()) === "four.md circle,one.md circle,three.md triangle,two.md circle"), await drawn());
  const colours = await tab.evaluate(() => {
    // What the graphics card drew: a triangle covers its middle, and not the corners of its box.
    const { sigma, model } = window.quipuScene;
    sigma.refresh();
    const canvas = sigma.getCanvases().nodes;
    const gl = canvas.getContext("webgl2") ?? canvas.getContext("webgl");
    sigma.render();
    const node = model.places.get("three.md");
    const { x, y } = sigma.graphToViewport({ x: model.data.x[node], y: model.data.y[node] });
    const radius = sigma.scaleSize(model.radius[node]);
    const ratio = canvas.width / canvas.clientWidth;
    const at = (dx, dy) => {
      const pixel = new Uint8Array(4);
      gl.readPixels(Math.round((x + dx * radius) * ratio), Math.round(canvas.height - (y + dy * radius) * ratio), 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel);
      return pixel[3];
    };
    return { middle: at(0, 0), foot: at(0.85, 0.55), corner: at(0.85, -0.7) };
  });
  check("the graphics card draws a triangle", colours.middle > 200 && colours.foot > 100 && colours.corner === 0, colours);
}

/** What is shown can be shared, and Back leads through the selections. */
async function address(tab) {
  await visit(tab, "#/");
  await visit(tab, "#/graph");
  const shown = () => state(tab, `scene.graph.filterNodes((key, node) => !node.hidden).map((key) => model.data.notes.id[key]).sort().join()`);
  await tab.click('.segments button:has-text("Tag")');
  await tab.click('.legend button[title="#red"]');
  await tab.click('.legend .links li button[title="references"]');
  const filtered = "five.md,four.md,one.md,six.md,three.md";
  await until(async () => (await shown()) === filtered);
  await tab.focus(".canvas");
  await tab.keyboard.press("n");
  await until(() => tab.$(".inspector h2"));
  await tab.keyboard.press("n");
  const hash = () => tab.evaluate(() => decodeURIComponent(location.hash));
  check("colours and filters are in the address", await until(async () => /^#\/graph\/note\/\S+\?.*by=tag.*hide\.tag=#red.*hide\.links=references/.test(await hash())), await hash());
  const second = await hash();
  await tab.goBack();
  check("Back leads to the selection before", await until(async () => (await hash()) !== second && /^#\/graph\/note\//.test(await hash())), await hash());
  await tab.goBack();
  check("and then to none, with the same filters", await until(async () => /^#\/graph\?/.test(await hash()) && (await shown()) === filtered), [await hash(), await shown()]);
  await tab.goBack();
  check("and then out of the graph", await until(async () => (await hash()) === "#/"), await hash());
  await tab.goForward();
  await tab.goForward();
  await tab.keyboard.press("l");
  await tab.focus(".canvas");
  await tab.keyboard.press("l");
  await tab.fill(".slider input", "60");
  await until(async () => /since=\d+/.test(await hash()));
  const before = [await hash(), await shown()];
  await tab.reload();
  await tab.waitForSelector("[data-drawn]");
  check("a reload shows the same", await until(async () => String([await hash(), await shown()]) === String(before)), [before, await hash(), await shown()]);
  await tab.evaluate(() => localStorage.removeItem("quipu.colour"));
}
