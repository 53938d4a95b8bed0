// Who wrote what, and the way back: authors of notes, undo of a change from the feed and from the history.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { check, connectedAgent, explorer, serious, until, visit, written } from "./session.mjs";

const FILES = {
  "ada.md": "---\nauthor: Ada\n---\nA barometer by Ada.\n",
  "ben.md": "---\nauthors: [Ben, Ada]\n---\nA barometer by both.\n",
  "nobody.md": "A barometer by nobody.\n",
};

export async function changesView(browser) {
  const place = written(FILES);
  const { tab, ask, faults, close } = await explorer(browser, place, "--write");
  const call = async (tool, args) => (await ask(`/api/call/${tool}`, args)).answer;
  await connectedAgent(place, "tea-agent", "create_node", { id: "agent.md", content: "A barometer by an agent.", tags: [] });
  await until(async () => (await ask("/api/graph")).notes.id.includes("agent.md"));
  await authors(tab);
  await undo(tab, place, call);
  check("changes: the console is empty", !faults.length, faults);
  await close();
}

async function authors(tab) {
  await visit(tab, "#/");
  const home = () => tab.$$eval(".panel:first-child .rows a", (rows) => rows.map((row) => [row.querySelector(".name").textContent, row.querySelector(".who")?.textContent ?? ""].join(" ").trim()).join());
  check("home says which agent wrote a note", await until(async () => /(^|,)Agent tea-agent(,|$)/.test(await home()) && /(^|,)Nobody(,|$)/.test(await home())), await home());
  const live = () => tab.$eval(".trail a", (row) => row.getAttribute("href"));
  check("each line of the trail leads somewhere", await until(async () => (await live()) === "#/note/agent.md"), await live().catch(String));
  await visit(tab, "#/search/barometer");
  const facet = () => tab.$$eval('.facets section:has(h2:text-is("Author")) button', (rows) => rows.map((row) => row.textContent).sort().join());
  check("results can be narrowed by author: as the note says, else as the history does", await until(async () => (await facet()) === "Ada2,Ben1,tea-agent1"), await facet().catch(String));
  await tab.click('.facets button:has-text("Ada")');
  const names = () => tab.$$eval(".result .name", (rows) => rows.map((row) => row.textContent).sort().join());
  check("an author leaves the notes of this author", await until(async () => (await names()) === "Ada,Ben"), await names());
  await visit(tab, "#/graph");
  await tab.click('.segments button:has-text("Author")');
  const legend = await tab.$$eval(".legend ul:not(.links ul) li", (rows) => Object.fromEntries(rows.map((row) => [row.querySelector(".name").textContent, row.querySelector(".count").textContent])));
  check("the colours of the graph can show authors", legend.Ada === "2" && legend.Ben === "1" && legend["tea-agent"] === "1" && legend["Not recorded"] === "1", legend);
  await tab.click('.segments button:has-text("Groups")');
}

async function undo(tab, place, call) {
  const file = join(place.vault, "unwanted.md");
  await visit(tab, "#/changes");
  await connectedAgent(place, "tea-agent", "create_node", { id: "unwanted.md", content: "Not wanted.", tags: [] });
  const line = '.feed .line:has-text("create_node"):has-text("unwanted.md")';
  const offered = await until(() => tab.$(`${line} .undo button`));
  check("a write in the feed can be undone", offered && existsSync(file));
  await tab.click(`${line} .undo button`);
  await tab.click(`${line} button:has-text("Cancel")`);
  check("an undo that is cancelled changes nothing", existsSync(file));
  await tab.click(`${line} .undo button`);
  await tab.click(`${line} button:has-text("Undo this change")`);
  check("the undo of a write is on disk", await until(async () => !existsSync(file)));
  check("and the feed says so", await until(() => tab.$eval(`${line} .undo`, (state) => state.textContent === "undone")));

  const { entity_id: id } = await call("create_entity", { name: "Kettle", entity_type: "Device", force: true });
  const row = '.rows.kept li:has-text("Kettle") >> nth=0';
  await until(() => tab.$(`${row} >> .undo button`));
  const found = await serious(tab);
  check("changes with undo: axe finds nothing serious", !found.length, found);
  await tab.click('.rows.kept button[aria-label="Undo: Kettle"]');
  await tab.click('.rows.kept button:has-text("Undo this change")');
  const isGone = async () => !(await call("list_entities", { per_page: 100 })).entities.some((entity) => entity.entity_id === id);
  check("a change to memory is undone from the history", await until(isGone));
  check("and the history says so", await until(() => tab.$$eval(".rows.kept li", (rows) => rows.some((row) => /Kettle.*undone/.test(row.textContent)))));
}
