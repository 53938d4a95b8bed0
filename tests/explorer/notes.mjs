// A note and what leads to it; numbers that must be true; states without content.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { writeFileSync } from "node:fs";
import { check, explorer, serious, until, visit, written } from "./session.mjs";

const BROKEN = 230;
const FILES = {
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
  const git = (time, ...words) =>
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.com", ...words], {
      cwd: place.vault, env: { ...process.env, GIT_AUTHOR_DATE: time, GIT_COMMITTER_DATE: time, GIT_CONFIG_GLOBAL: "/dev/null" },
    });
  git("2024-01-01T00:00:00Z", "init", "-q", "-b", "main");
  git("2024-01-01T00:00:00Z", "add", "-A");
  git("2024-01-01T00:00:00Z", "commit", "-q", "-m", "x");
  writeFileSync(join(place.vault, "src/code.rs"), "2\n");
  git("2024-02-01T12:00:00Z", "commit", "-q", "-a", "-m", "y");
  const { tab, ask, faults, close } = await explorer(browser, place, "--write");
  await links(tab);
  await text(tab);
  await code(tab);
  await inspector(tab);
  await memory(tab, ask);
  await health(tab);
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
  let fails = true;
  await tab.route("**/api/call/**", (route) => (fails ? route.fulfill({ json: { error: { code: "PROVIDER", message: "the disk is full" } } }) : route.continue()));
  for (const [view, what] of [["search/other", "The search failed"], ["note/a.md", "The note cannot be read"], ["memory/7", "The entity cannot be shown"], ["memory", "Memory cannot be read"]]) {
    await tab.evaluate((to) => (location.hash = to), `#/${view}`);
    const failed = await until(() => tab.$eval(".failed", (view, what) => view.textContent.includes(what) && view.textContent, what));
    check(`an error, ${view}: it says what failed and why`, /the disk is full/.test(failed), failed);
    const found = await serious(tab);
    check(`an error, ${view}: axe finds nothing serious`, !found.length, found);
  }
  fails = false;
  await tab.click('.failed button:has-text("Retry")');
  check("a retry brings the view back", await until(() => tab.$eval("main", (main) => /remembered nothing yet/.test(main.textContent))));
  await close();
}
