// A real vault by keys alone; what a connected agent writes, in each view that shows it; and its server away and back.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { check, connectedAgent, copied, served, until, visit } from "./session.mjs";

export async function realVault(browser, vault) {
  const place = copied(vault);
  const { tab, faults, ask, enter, restart, close } = await served(browser, place);
  await enter();
  const { notes } = await ask("/api/graph");
  const order = notes.id.map((_, at) => at).sort((a, b) => notes.rank[b] - notes.rank[a]);
  await walked(tab, notes, order);
  await written(tab, place, notes.id[order[0]]);
  check("real vault, by keys and with an agent: the console is empty", !faults.length, faults);
  await awayAndBack(tab, place, restart);
  await close();
}

const hash = (tab) => tab.evaluate(() => decodeURIComponent(location.hash));

async function walked(tab, notes, order) {
  const { keyboard } = tab;
  await visit(tab, "#/");
  await keyboard.press("/");
  await tab.waitForSelector(".search-box input:focus");
  await keyboard.type("note");
  await until(() => tab.$$eval(".result", (rows) => rows.length > 2));
  await keyboard.press("ArrowDown");
  const second = await tab.$eval(".result:nth-child(2) .name", (name) => name.textContent);
  await keyboard.press("Enter");
  check("real vault: arrows and Enter open a result", await until(() => tab.$eval(".note h1", (title, second) => title.textContent === second, second)), second);
  await keyboard.press("g");
  await keyboard.press("g");
  await tab.waitForSelector("[data-drawn]");
  await until(() => tab.evaluate(() => !document.querySelector("main [aria-busy=true]")));
  await tab.focus(".canvas");
  await keyboard.press("n");
  const selected = await until(async () => /^#\/graph\/note\/(.*)/.exec(await hash(tab))?.[1]);
  check("real vault: n selects the most central node", selected === notes.id[order[0]], [selected, notes.id[order[0]]]);
  // The page draws the selection after the address.
  await tab.waitForSelector('.inspector button:has-text("Path to…")');
  await keyboard.press("f");
  await tab.waitForSelector('dialog[open][aria-label="Path to"] input:focus');
  await keyboard.type(notes.title[order[1]]);
  await until(() => tab.$("dialog[open] [role=option][aria-selected=true]"));
  await keyboard.press("Enter");
  check("real vault: f and Enter show a path", await until(async () => /^#\/graph\/path\//.test(await hash(tab))), await hash(tab));
  await tab.focus(".canvas");
  await keyboard.press("Escape");
  await until(async () => (await hash(tab)) === "#/graph");
  await until(async () => !(await tab.$(".inspector")) || !(await tab.$eval(".inspector", (it) => it.textContent.includes("Path"))));
  await keyboard.press("n");
  const again = await until(async () => /^#\/graph\/note\/(.*)/.exec(await hash(tab))?.[1]);
  await tab.waitForSelector('.inspector button:has-text("Path to…")');
  await keyboard.press("Enter");
  check("real vault: Enter opens the selected node", await until(async () => (await hash(tab)) === `#/note/${again}`), [await hash(tab), again]);
  await keyboard.press("g");
  await keyboard.press("m");
  check("real vault: g m opens memory", await until(async () => (await hash(tab)) === "#/memory"), await hash(tab));
}

async function written(tab, place, central) {
  await connectedAgent(place, "real-agent", "create_entity", { name: "Seen by an agent", entity_type: "Event" });
  check("real vault: an agent's entity is in Memory", await until(() => tab.$eval(".entities", (list) => list.textContent.includes("Seen by an agent"))));
  await visit(tab, "#/graph");
  await connectedAgent(place, "real-agent", "create_node", { id: "written by an agent.md", content: `See [[${central.replace(/\.md$/, "")}]].`, tags: [] });
  check("real vault: an agent's note is in the graph", await until(() => tab.evaluate(() => window.quipuScene.model.places.has("written by an agent.md"))));
  await visit(tab, "#/changes");
  const lines = () => tab.$$eval(".feed .line", (lines) => lines.map((line) => line.textContent));
  check("real vault: both are in Changes", await until(async () => {
    const shown = (await lines()).join("\n");
    return /real-agent.*create_node/.test(shown) && /real-agent.*create_entity/.test(shown);
  }), await lines());
}

async function awayAndBack(tab, place, restart) {
  await visit(tab, "#/");
  await until(() => tab.$(".view.home .rows a"));
  const start = await restart();
  check("real vault: a server that went away is reported", await until(() => tab.$(".banner")));
  check("real vault: what was shown stays", (await tab.$$(".rows a")).length > 3);
  writeFileSync(join(place.vault, "written while away.md"), "# Written while away\n");
  await start();
  check("real vault: it comes back by itself, with what changed", await until(async () => !(await tab.$(".banner")) && (await tab.$eval("main", (main) => main.textContent.includes("Written While Away") || main.textContent.includes("Written while away"))), 60_000));
}
