// The versions of a note in the page: who made each, what it changed, and the way back. The client's name and the text try to run script.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { agent, check, connectedAgent, serious, until } from "./session.mjs";

const ATTACK = `<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>`;

/** Needs a tab that may write. */
export async function versions(tab, { place }) {
  const file = join(place.vault, "versions.md");
  agent(place, "create_node", { id: "versions.md", content: "First line.\nSecond line.\n", tags: [] });
  const edit = (text) => ({ id: "versions.md", edits: [{ op: "replace", old: "Second line.", new: text }] });
  await connectedAgent(place, `agent ${ATTACK}`, "edit_node", edit(`Changed ${ATTACK}.`));
  await tab.evaluate(() => (location.hash = "#/note/versions.md"));
  await tab.waitForSelector(".prose");
  await tab.click(".history summary");
  const lines = () => tab.$$eval(".timeline li", (entries) => entries.map((entry) => entry.textContent));
  check("the versions of a note are listed with their authors", await until(async () => /edit by agent <img.*current/.test((await lines())[0]) && /create/.test((await lines())[1])), await lines());

  await tab.click(".timeline .version >> nth=0");
  const rows = () => tab.$$eval(".timeline .diff-row", (found) => found.map((row) => [...row.children].map((side) => side.textContent)));
  check("a version is shown beside the present text", await until(async () => (await rows()).some(([left, right]) => left === "Second line." && right === `Changed ${ATTACK}.`)), await rows());
  check("removed and added lines are told apart", (await tab.$$eval(".timeline .diff-row .removed, .timeline .diff-row .added", (sides) => sides.length)) === 2);
  const found = await serious(tab);
  check("versions: axe finds nothing serious", !found.length, found);

  await tab.click("text=Revert to this version");
  await tab.click('.timeline .actions button:has-text("Cancel")');
  check("a revert that is cancelled changes nothing", readFileSync(file, "utf8").includes("Changed"));
  await tab.click("text=Revert to this version");
  await tab.click('.timeline .actions button:has-text("Revert") >> nth=0');
  check("a version is brought back", await until(async () => readFileSync(file, "utf8").includes("Second line.")), readFileSync(file, "utf8"));
  check("the note shows it", await until(() => tab.$eval(".prose", (prose) => /Second line/.test(prose.textContent))));
  check("the revert is a version too", await until(async () => /revert/.test((await lines())[0]) && (await lines()).length === 3), await lines());

  writeFileSync(file, "By another program.\n");
  check("a change by another program is a version", await until(async () => /outside|another program/.test((await lines())[0])), await lines());
  check("what a version says runs nothing", !(await tab.evaluate(() => window.pwned)) && !(await tab.evaluate(() => window.violations)).length);
}

/** What happened to an entity, and the way back. */
export async function entityHistory(tab, { place }) {
  const { entity_id: id } = agent(place, "create_entity", { name: "Wind vane", entity_type: "Device" });
  await connectedAgent(place, `agent ${ATTACK}`, "create_observation", { entity_id: id, text_content: `squeaks ${ATTACK}` });
  await tab.evaluate((id) => (location.hash = `#/memory/${id}`), id);
  await tab.click(".history summary");
  const lines = () => tab.$$eval(".history .timeline li", (entries) => entries.map((entry) => entry.textContent));
  check("the changes of an entity are listed with their authors", await until(async () => /create observation by agent <img.*squeaks/.test((await lines())[0]) && /create entity/.test((await lines())[1])), await lines());
  await tab.click('.history button:has-text("Undo") >> nth=0');
  check("a change of an entity is undone", await until(async () => /undo change/.test((await lines())[0]) && /undone by/.test((await lines())[1])), await lines());
  check("and the page shows the entity without it", await until(async () => (await tab.$$(".view.memory .after:not(.history) .timeline li")).length === 0));
  check("what the history of an entity says runs nothing", !(await tab.evaluate(() => window.pwned)) && !(await tab.evaluate(() => window.violations)).length);
}
