// A note and what leads to it; numbers that must be true; states without content.
import { join } from "node:path";
import { writeFileSync } from "node:fs";
import { check, commit, explorer, serious, until, visit, written } from "./session.mjs";

const BROKEN = 230;
/** Above this a tool gives only the beginning of a text and some of the links. */
const LONG = 20_000;
const LINKS = 40;
const FILES = {
  ...Object.fromEntries(Array.from({ length: LINKS }, (_, n) => [`far/target ${n}.md`, `Back to [[long]].\n`])),
  "long.md": `${"Words that fill a line of a long note.\n\n".repeat(LONG / 40)}${Array.from({ length: LINKS }, (_, n) => `The sentence of [[target ${n}]].\n\n`).join("")}`,
  "nearly long.md": `${"Words that fill a line of a long note.\n\n".repeat(LONG / 41 - 60)}${Array.from({ length: LINKS }, (_, n) => `Near [[target ${n}]].\n\n`).join("")}`,
  "one.md": `It needs [[two|depends_on]] and breaks [[three|conflicts_with]]. Another sentence.\n`,
  "two.md": "# Two\n\n## First part\n\nText with a mark[^a] and one without a text[^b].\n\n## Second part\n\nMore.\n\n## Third part\n\nSee [[linked only]].\n\n[^a]: The **text** of it.\n",
  "three.md": "A link to [[three]] itself, and to [[none]].\n\nA sentence that goes\non in the next line, with [[two]] in\nit. Another.\n",
  "linked only.md": "The page Two is named here without a link, and two links lead to it. Twofold is another word.\n",
  "property.md": '---\ndepends_on: ["[[three]]"]\n---\nText.\n',
  "code.md": "```rust\nfn main<'a>() { // says \"it\"\n    let word = \"<b>x</b>\"; return 42;\n}\n```\n\n```nothing\nlet plain = 1;\n```\n\n```yaml\nname: true # on\n```\n",
  "stale.md": "---\nsource_refs: [src/code.rs]\n---\nAbout the code.\n",
  "src/code.rs": "1\n",
  "broken.md": Array.from({ length: BROKEN }, (_, n) => `[[missing ${n}]]\n`).join(""),
};

export async function noteView(browser) {
  const place = written(FILES);
  commit(place, "2024-01-01T00:00:00Z");
  writeFileSync(join(place.vault, "src/code.rs"), "2\n");
  commit(place, "2024-02-01T12:00:00Z");
  const { tab, ask, faults, close } = await explorer(browser, place, "--write");
  await links(tab);
  await longNote(tab);
  await text(tab);
  await code(tab);
  await inspector(tab);
  await memory(tab, ask);
  await health(tab);
  await unlinked(tab, ask);
  await largeMemory(tab, ask);
  await plots(tab, ask);
  check("notes: the console is empty", !faults.length, faults);
  await close();
}

async function links(tab) {
  const sentence = async (note, from) => {
    await visit(tab, `#/note/${note}`);
    return until(() => tab.$$eval(".backlinks li", (rows, from) => rows.find((row) => row.querySelector("a").textContent === from && row.querySelector("p").textContent.trim())?.querySelector("p").innerHTML, from));
  };
  const two = await sentence("two.md", "One");
  check("a backlink has the sentence around it, with typed links by their targets", two === "It needs <mark>two</mark> and breaks three.", two);
  const three = await sentence("three.md", "One");
  check("also before the link", three === "It needs two and breaks <mark>three</mark>.", three);
  const wrapped = await sentence("two.md", "Three");
  check("a sentence may go on over the end of a line", wrapped === "A sentence that goes on in the next line, with <mark>two</mark> in it.", wrapped);
  await visit(tab, "#/note/three.md");
  const own = await until(() => tab.$$eval(".prose a", (links) => links.length && links.map((link) => `${link.className} ${link.textContent}`).join()));
  check("a link to the note itself is not broken", own === "internal three,broken none,internal two", own);
  const property = await sentence("three.md", "Property");
  check("a link of the frontmatter is told as one", /In its properties/.test(property), property);
  await visit(tab, "#/note/two.md");
  await tab.click(".mentions summary");
  const mentions = await until(() => tab.$$eval(".mentions li", (rows) => rows.length > 0 && rows.map((row) => [row.querySelector("a").textContent, row.querySelector("mark")?.textContent])));
  check("unlinked mentions have pages that the note links to, and none that links to it", JSON.stringify(mentions) === '[["Linked Only","Two"]]', mentions);
}

/** Of a long note and of a hub the tool gives some links. The page has all. */
async function longNote(tab) {
  for (const note of ["long.md", "nearly long.md"]) {
    await visit(tab, `#/note/${note}`);
    const kinds = await until(() => tab.$$eval(".prose p a", (links) => links.length > 30 && Object.fromEntries(["internal", "broken"].map((kind) => [kind, links.filter((link) => link.className === kind).length]))));
    check(`${note}: no link of a long note is broken that has a note`, kinds.internal === LINKS && kinds.broken === 0, kinds);
  }
  await visit(tab, "#/note/long.md");
  check("a long note has all of its backlinks", await until(async () => (await tab.$eval(".after:has(.backlinks) .count", (count) => count.textContent)) === String(LINKS)));
  const listed = () => tab.$$eval(".backlinks li", (rows) => rows.length);
  const before = await listed();
  await tab.click('.after:has(.backlinks) button:has-text("Show more")');
  check("and lists them on demand", before < LINKS && (await until(async () => (await listed()) === LINKS)), [before, await listed()]);
  await visit(tab, `#/note/far/target ${LINKS - 1}.md`);
  const sentence = () => tab.$$eval(".backlinks li", (rows) => rows.find((row) => row.querySelector("a").textContent === "Long")?.querySelector("p").textContent.trim());
  check("a link far down in a long note has its sentence", await until(async () => (await sentence()) === `The sentence of target ${LINKS - 1}.`), await sentence());
}

async function text(tab) {
  await visit(tab, "#/note/two.md");
  const outline = await until(() => tab.$$eval(".outline button", (rows) => rows.length && rows.map((row) => row.textContent)));
  check("the outline has the headings", JSON.stringify(outline) === '["First part","Second part","Third part"]', outline);
  await tab.click('.outline button:has-text("Third part")');
  check("and leads to them", await until(() => tab.evaluate(() => document.activeElement.textContent === "Third part")));
  await tab.click(".prose button.footnote");
  check("a footnote leads to its text", await until(() => tab.evaluate(() => document.activeElement.textContent === "The text of it.")));
  const prose = await tab.$eval(".prose", (prose) => prose.textContent);
  check("a mark without a text stays as it is", prose.includes("without a text[^b].") && !prose.includes("[^a]"), prose);
  await visit(tab, "#/note/stale.md");
  const notice = await until(() => tab.$eval(".notice.amber", (notice) => notice.textContent));
  check("a stale note says which sources changed and when", /Sources changed.*Feb 1, 2024.*src\/code\.rs/.test(notice), notice);
}

async function code(tab) {
  await visit(tab, "#/note/code.md");
  const pieces = (language) => tab.$$eval(`.prose pre[data-language="${language}"] span`, (spans) => spans.map((span) => `${span.className.slice(5)} ${span.textContent}`));
  const rust = await until(async () => (await pieces("rust")).length && pieces("rust"));
  check("code has the colours of its language", JSON.stringify(rust) === JSON.stringify(["word fn", 'comment // says "it"', "word let", 'string "<b>x</b>"', "word return", "number 42"]), rust);
  const yaml = await pieces("yaml");
  check("so has YAML", JSON.stringify(yaml) === JSON.stringify(["name name", "word true", "comment # on"]), yaml);
  check("code of an unknown language is plain, and all of it is there", !(await pieces("nothing")).length && (await tab.$eval('.prose pre[data-language="nothing"]', (block) => block.textContent)) === "let plain = 1;\n");
  for (const theme of ["light", "dark"]) {
    await tab.emulateMedia({ colorScheme: theme });
    const found = await serious(tab);
    check(`code, ${theme}: axe finds nothing serious`, !found.length, found);
  }
  await tab.emulateMedia({ colorScheme: "light" });
}

/** What the panel of a selected node says of its links. */
async function inspector(tab) {
  await visit(tab, "#/graph/note/two.md");
  const sentences = (title) => tab.$$eval(`.inspector section:has(h3:has-text("${title}")) .sentence`, (lines) => lines.map((line) => line.innerHTML));
  const into = await until(async () => ((await sentences("Links to it"))[0] ?? "").trim() && sentences("Links to it"));
  check("the inspector has the sentence of each link to a note", into[0] === "It needs <mark>two</mark> and breaks three.", into);
  const out = await until(async () => (await sentences("It links to")).length && sentences("It links to"));
  check("and of each link from it", out[0] === "See <mark>linked only</mark>.", out);
  const found = await serious(tab);
  check("inspector: axe finds nothing serious", !found.length, found);
}

async function memory(tab, ask) {
  const call = async (tool, args) => (await ask(`/api/call/${tool}`, args)).answer;
  const create = async (name, observations) => (await call("create_entity", { name, entity_type: "Person", observations, force: true })).entity_id;
  const [ada, boat, other] = [await create("Ada", ["Wrote [[three]] and [[nowhere]]."]), await create("Boat"), await create("Other")];
  const relation = await call("create_relation", { from_entity_id: boat, to_entity_id: ada, relation_type: "led_by" });
  await call("create_relation", { from_entity_id: other, to_entity_id: ada, relation_type: "knows" });
  await visit(tab, "#/changes");
  const row = () => tab.$$eval(".after .rows li", (rows) => rows.map((row) => [row.querySelector(".name").textContent, row.querySelector("a")?.getAttribute("href")]).find(([name]) => / led_by /.test(name)));
  const found = await until(row);
  check("an earlier relation is told by names, and leads to its entity", found[0] === "Boat led_by Ada" && found[1] === `#/memory/${boat}`, [found, relation]);
  await visit(tab, `#/memory/${ada}`);
  const hrefs = await until(() => tab.$$eval(".timeline a", (links) => links.length && links.map((link) => link.getAttribute("href"))));
  check("a link in an observation opens its note, or a search where there is none", JSON.stringify(hrefs) === '["#/note/three.md","#/search/nowhere"]', hrefs);
  await visit(tab, "#/search/how do I link two");
  await until(() => tab.$(".result mark"));
  const marks = await tab.$$eval(".result mark", (marks) => marks.map((mark) => mark.textContent.toLowerCase()));
  check("words that are in every text are not marked", marks.length > 0 && marks.every((mark) => ["link", "two"].includes(mark)), marks);
  await tab.click(".why summary >> nth=0");
  const reason = await tab.$eval(".why[open] p", (text) => text.textContent);
  check("each score has its reason", /\w+.*Words \d+ %, meaning \d+ %, links \d+ %/s.test(reason), reason);
}

const ENTITIES = 2_130;
const RELATIONS = 230;

/** More than one request, or one screen, has. */
async function largeMemory(tab, ask) {
  const call = async (tool, args) => (await ask(`/api/call/${tool}`, args)).answer;
  const entities = Array.from({ length: ENTITIES }, (_, n) => ({ name: `Buoy ${n}`, entity_type: "Buoy" }));
  const ids = [];
  for (let at = 0; at < ENTITIES; at += 50) {
    const answer = await call("bulk_update", { entities: entities.slice(at, at + 50) });
    ids.push(...answer.created_entities.map((entity) => entity.entity_id));
  }
  const relations = ids.slice(1, RELATIONS + 1).map((to) => ({ from_entity_id: ids[0], to_entity_id: to, relation_type: "moors" }));
  for (let at = 0; at < RELATIONS; at += 50) await call("bulk_update", { relations: relations.slice(at, at + 50) });
  await call("create_relation", { from_entity_id: ids[1], to_entity_id: ids[1], relation_type: "watches" });
  await visit(tab, "#/memory");
  const head = () => tab.$eval(".view-head p", (text) => text.textContent);
  check("every entity is counted", await until(async () => (await head()).startsWith(`${(ENTITIES + 4).toLocaleString("en")} entities`)), await head());
  await tab.click('[aria-label="Filter by name"]');
  await tab.keyboard.type(`Buoy ${ENTITIES - 1}`);
  check("and the last of them is found", await until(async () => (await tab.$$eval(".entities .name", (names) => names.map((name) => name.textContent).join())) === `Buoy ${ENTITIES - 1}`));
  check("by an address that can be kept", await until(() => tab.evaluate((n) => new URLSearchParams(location.hash.split("?")[1]).get("name") === `Buoy ${n}`, ENTITIES - 1)));

  await visit(tab, `#/memory/${ids[0]}`);
  const nodes = await until(() => tab.$$eval(".small-graph .node", (nodes) => nodes.length > 1 && nodes.length));
  check("the relations of an entity are a small graph", nodes > 10 && nodes < 40 && (await tab.$$(".small-graph .head")).length >= nodes - 1, nodes);
  const listed = () => tab.$$eval(".relations li", (rows) => rows.length);
  for (let n = 0; n < 3; n++) await tab.click('button:has-text("more")');
  check("and all of them are listed on demand", await until(async () => (await listed()) === RELATIONS), await listed());
  await tab.focus(".small-graph .node:not(.centre)");
  await tab.keyboard.press("Enter");
  check("a node of the small graph opens its entity", await until(() => tab.evaluate((id) => /^#\/memory\/\d+$/.test(location.hash) && !location.hash.endsWith(`/${id}`), ids[0])), tab.url());
  await visit(tab, "#/graph");
  const loops = () => tab.evaluate(() => [window.quipuScene.graph.filterEdges((edge, attributes, source, target) => source === target).length, window.quipuScene.shown.loops.length]);
  check("a relation of an entity to itself is drawn as a loop", await until(async () => String(await loops()) === "1,1"), await loops());
}

/** Numbers of one thing are the same everywhere. */
async function unlinked(tab, ask) {
  const call = async (tool, args) => (await ask(`/api/call/${tool}`, args)).answer;
  // Memory mentions a note that no note links to.
  await call("create_entity", { name: "Reader", entity_type: "Person", observations: ["Read [[code]]."], force: true });
  await visit(tab, "#/");
  const home = () => tab.$eval('.counts li:has(.name:text-is("Unlinked notes")) .number', (number) => number.textContent);
  await until(async () => /\d/.test(await home()));
  await visit(tab, "#/health");
  const listed = () => tab.$eval('.panel:has(h2:has-text("Unlinked notes")) .count', (count) => count.textContent);
  await until(async () => /\d/.test(await listed()));
  const told = await listed();
  await visit(tab, "#/");
  check("home and health count the same unlinked notes", await until(async () => (await home()) === told), [await home(), told]);
}

async function plots(tab, ask) {
  const { hour } = await ask("/api/status");
  const lengths = [hour.calls, hour.queue, hour.embedded, hour.to_embed, hour.memory_mb, ...Object.values(hour.p95_ms)].map((row) => row.length);
  check("the server keeps sixty minutes of each value", lengths.length > 5 && lengths.every((length) => length === 60), lengths);
  check("and this minute has what happened in it", Object.values(hour.p95_ms).some((row) => row[59] > 0 || row[58] > 0) && hour.memory_mb[59] > 0, hour.memory_mb);
  await visit(tab, "#/health");
  const labels = await tab.$$eval(".spark", (plots) => plots.map((plot) => plot.getAttribute("aria-label")));
  for (const wanted of [/Calls by agents/, /waited for the index/, /Memory of the server/, /95 % of the calls of get_entity/]) {
    check(`health has a plot of the last hour: ${wanted.source}`, labels.some((label) => wanted.test(label)), labels);
  }
}

async function health(tab) {
  await visit(tab, "#/health");
  const group = '.group:has-text("Broken links")';
  const number = await until(() => tab.$eval(`${group} summary .count`, (count) => count.textContent));
  check("broken links are all counted", number === String(BROKEN + 1), number);
  await tab.click(`${group} summary`);
  const listed = () => tab.$$eval(`${group} li`, (rows) => rows.length);
  const before = await listed();
  await tab.click(`${group} button:has-text("Show more")`);
  check("and more of them are shown on demand", (await listed()) > before, [before, await listed()]);
}

/** A vault without notes, a server that fails, and a search that finds nothing. */
export async function states(browser) {
  const { tab, close, faults } = await explorer(browser, written({}), "--write");
  check("an empty vault says what to do", await until(() => tab.$eval(".empty", (view) => /This vault is empty.*quipu install/s.test(view.textContent))));
  for (const [view, text] of [["graph", "Nothing to draw yet"], ["memory", "remembered nothing yet"], ["search/word", "Nothing found"], ["changes", "Nothing since"], ["health", "Nothing odd"]]) {
    await tab.evaluate((to) => (location.hash = to), `#/${view}`);
    check(`an empty vault, ${view}: it says so`, await until(() => tab.$eval("main", (main, text) => main.textContent.includes(text), text)), await tab.$eval("main", (main) => main.textContent));
    const found = await serious(tab);
    check(`an empty vault, ${view}: axe finds nothing serious`, !found.length, found);
  }
  await tab.evaluate(() => (location.hash = "#/search/word"));
  check("where nothing is found, one can ask for a missing note", await until(() => tab.$(".why-not summary")));
  check("empty vault: the console is empty", !faults.length, faults);
  await failures(tab);
  await close();
}

/** Where each view is, what of it fails, and what it says then. */
const FAILURES = [
  ["search/other", "The search failed"],
  ["note/a.md", "The note cannot be read"],
  ["memory/7", "The entity cannot be shown"],
  ["memory/duplicates", "Duplicates cannot be looked for"],
  ["changes", "The history cannot be read"],
  ["memory", "Memory cannot be read"],
];

async function failures(tab) {
  let fails = [];
  const error = { error: { code: "PROVIDER", message: "the disk is full" } };
  await tab.route("**/api/**", (route) => (fails.some((part) => route.request().url().includes(part)) ? route.fulfill({ status: 200, json: error }) : route.continue()));
  fails = ["/api/call/"];
  for (const [view, what] of FAILURES) {
    await tab.evaluate((to) => (location.hash = to), `#/${view}`);
    const failed = await until(() => tab.$eval("main", (main, what) => main.textContent.includes(what) && main.textContent, what));
    check(`an error, ${view}: it says what failed and why`, /the disk is full/.test(failed), failed);
    check(`an error, ${view}: nothing loads for ever`, await until(() => tab.evaluate(() => !document.querySelector("main .skeleton"))));
    check(`an error, ${view}: it can be retried`, await tab.$('main [role=alert] button:has-text("Retry")'));
    const found = await serious(tab);
    check(`an error, ${view}: axe finds nothing serious`, !found.length, found);
  }
  fails = [];
  await tab.click('.failed button:has-text("Retry")');
  check("a retry brings the view back", await until(() => tab.$eval("main", (main) => /remembered nothing yet/.test(main.textContent))));
}

/** Parts of views that fail alone, in a vault that has something to show. */
export async function partFailures(browser) {
  const { tab, ask, faults, close } = await explorer(browser, written({ "one.md": "[[two]] and Two.\n", "two.md": "Text.\n" }), "--write");
  const twins = ["Barometer", "Barometers"];
  for (const name of twins) await ask("/api/call/create_entity", { name, entity_type: "Device", force: true });
  let fails = "nothing";
  await tab.route("**/api/**", (route) => (route.request().url().includes(fails) ? route.fulfill({ status: fails.includes("call") ? 200 : 500, json: { error: { code: "PROVIDER", message: "the disk is full" } } }) : route.continue()));
  const failsAndComes = async (name, part, opened, what, back) => {
    fails = part;
    await opened();
    const alert = () => tab.$$eval("[role=alert]", (alerts) => alerts.map((alert) => alert.textContent).join());
    check(`${name}: it says what failed and why`, await until(async () => (await alert()).includes(`${what}`) && (await alert()).includes("the disk is full")), await alert());
    check(`${name}: nothing loads for ever`, await until(() => tab.evaluate(() => !document.querySelector("main .skeleton"))));
    fails = "nothing";
    await tab.click('[role=alert]:has-text("disk is full") button:has-text("Retry")');
    check(`${name}: a retry brings it back`, await until(() => tab.$eval("main", (main, back) => new RegExp(back, "s").test(main.textContent) && !/disk is full/.test(main.textContent), back)), await tab.$eval("main", (main) => main.textContent));
  };
  const fresh = (address) => async () => {
    await tab.evaluate((to) => (location.hash = to), address);
    await tab.reload();
    await tab.waitForSelector(".frame");
  };
  await failsAndComes("home", "/api/call/ubp_list_pages", fresh("#/"), "The vault cannot be read", "Changed.*Two");
  await failsAndComes("home, central notes", "/api/call/get_hubs", fresh("#/"), "Central notes cannot be read", "Most central notes.*Two");
  await failsAndComes("changes, history", "/api/call/recent_changes", fresh("#/changes"), "The history cannot be read", "History.*Barometer");
  await failsAndComes("unlinked mentions", "/api/call/ubp_fulltext_search", async () => {
    await visit(tab, "#/note/two.md");
    await tab.click(".mentions summary");
  }, "The text cannot be searched", "Unlinked mentions");
  await failsAndComes("history of a note", "/api/call/node_history", async () => {
    await visit(tab, "#/note/two.md");
    await tab.click(".history summary");
  }, "The history cannot be read", "current");
  await failsAndComes("an opened pair", "/api/call/get_entity", async () => {
    await visit(tab, "#/memory/duplicates");
    await tab.click(".pair-head");
  }, "The two cannot be compared", "Keep this one");
  check("failing parts: the console is empty", !faults.length, faults);
  // A browser tells its console of a request that is answered with an error status.
  await failsAndComes("health", "/api/status", fresh("#/health"), "The state of the server cannot be read", "Latency by tool");
  await close();
}
