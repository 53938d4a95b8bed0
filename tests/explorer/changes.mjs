// Who wrote what, and the way back: authors of notes, undo of a change from the feed and from the history.
import { existsSync, writeFileSync } from "node:fs";
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
  await changedLines(tab, place);
  await pause(tab, place, ask);
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

/** One line of what a change did. */
async function changedLines(tab, place) {
  const file = join(place.vault, "lines.md");
  // It is read when it comes into sight.
  const line = () => tab.$eval('.rows.kept li:has-text("Lines") .changed-line', (line) => (line.scrollIntoView({ block: "center" }), line.textContent));
  await visit(tab, "#/changes");
  await connectedAgent(place, "tea-agent", "create_node", { id: "lines.md", content: "The first line.\nThe second line.\n", tags: [] });
  check("the entry of a new note has its first line", await until(async () => (await line()) === "+ The first line."), await line().catch(String));
  await connectedAgent(place, "tea-agent", "edit_node", { id: "lines.md", edits: [{ op: "replace", old: "second", new: "changed" }] });
  check("the entry of an edit has the first changed line", await until(async () => (await line()) === "+ The changed line."), await line().catch(String));
  const inFeed = '.feed .line:has-text("edit_node"):has-text("lines.md") .changed-line';
  check("so has the line of the feed", await until(() => tab.$eval(inFeed, (line) => (line.scrollIntoView({ block: "center" }), line.textContent === "+ The changed line."))));
  writeFileSync(file, "The first line.\n");
  check("the entry of a removal has the removed line", await until(async () => (await line()) === "− The changed line."), await line().catch(String));
}

/** A feed that is paused says how much came meanwhile, also when the page keeps no more lines. */
async function pause(tab, place, ask) {
  const notes = 520;
  const write = (from, to) => {
    for (let n = from; n < to; n++) writeFileSync(join(place.vault, `many ${n}.md`), "Text.\n");
  };
  await visit(tab, "#/changes");
  write(0, notes);
  const isRead = (count) => until(async () => (await ask("/api/graph")).notes.id.filter((id) => id.startsWith("many ")).length === count);
  await isRead(notes);
  check("the feed keeps 500 lines", await until(async () => (await tab.$$(".feed .line")).length === 500), (await tab.$$(".feed .line")).length);
  await tab.click('button:has-text("Pause")');
  write(notes, notes + 5);
  await isRead(notes + 5);
  const button = () => tab.$eval(".bar-line > button", (button) => button.textContent.trim());
  check("a paused feed that is full says how much is new", await until(async () => (await button()) === "Resume (5 new)"), await button());
  await tab.click(".bar-line > button");
  check("and shows it again", await until(() => tab.$(`.feed .line:has-text("many ${notes + 4}.md")`)));
  await tab.click('.segments button:has-text("Calls")');
  check("the filter of the feed is in the address", await until(() => tab.evaluate(() => location.hash === "#/changes?what=call")), tab.url());
  await tab.evaluate(() => localStorage.setItem("quipu.visit", String(Date.now() - 3_600_000)));
  await tab.evaluate(() => sessionStorage.removeItem("quipu.visit"));
  await tab.reload();
  await visit(tab, "#/");
  const panel = ".panel:first-child";
  const head = () => tab.$eval(`${panel} h2`, (head) => head.textContent.trim());
  check("home says how many notes changed since the last visit", await until(async () => (await head()) === "Changed since your last visit 200 or more"), await head());
  await tab.click(`${panel} button:has-text("more")`);
  check("and shows more of them", await until(async () => (await tab.$$(`${panel} li`)).length === 58), (await tab.$$(`${panel} li`)).length);
}
