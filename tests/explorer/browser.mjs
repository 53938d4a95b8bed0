// The explorer in headless Chromium: browser.mjs BINARY MODULES EXAMPLE_VAULT [REAL_VAULT...]
//
// Every view in both themes and on a phone, by keyboard alone, live while an agent writes, with the server away and back, and against
// notes that try to run script or to freeze the page. The first real vault is shown in the same ways; the picture of each is compared
// with the tools. Prints the totals alone on the last line.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { behaviour } from "./behaviour.mjs";
import { changesView } from "./changes.mjs";
import { chat } from "./chat.mjs";
import { graphView, overlapping } from "./graph.mjs";
import { colours } from "./colours.mjs";
import { hostile } from "./hostile.mjs";
import { loading } from "./loading.mjs";
import { noteView, partFailures, states } from "./notes.mjs";
import { picturePage } from "./picture.mjs";
import { realVault } from "./real.mjs";
import { searchView } from "./search.mjs";
import { agent, check, connectedAgent, copied, everyView, example, explorer, finish, freePort, launch, open, page, quipu, real, reals, serious, serve, stop, until, visit } from "./session.mjs";
import { isTrue, seedMemory } from "./truth.mjs";
import { entityHistory, versions } from "./versions.mjs";

const browser = await launch();

const ATTACK = `"><img src=x onerror="window.pwned=1"><script>window.pwned=1</script>`;

/** A vault whose every text tries to run script. */
function poisoned(vault) {
  const put = (path, text) => {
    mkdirSync(dirname(join(vault, path)), { recursive: true });
    writeFileSync(join(vault, path), text);
  };
  put(
    "attack/markdown.md",
    `---
title: 'Title ${ATTACK}'
tags: ['t<img/src=x/onerror=window.pwned=1>', 'plain']
author: '${ATTACK}'
"<img src=x onerror=window.pwned=1>": value
---
# Attack ${ATTACK}

<script>window.pwned = 1</script>
<img src="x" onerror="window.pwned = 1">
<svg onload="window.pwned = 1"><script>window.pwned = 1</script></svg>
<iframe src="javascript:window.parent.pwned = 1"></iframe>
<iframe srcdoc="<script>parent.pwned = 1</script>"></iframe>
<math><mtext><table><mglyph><style><img src=x onerror="window.pwned=1"></style></mglyph></table></mtext></math>
<a href="javascript:window.pwned = 1">raw link</a>
<form action="javascript:window.pwned = 1"><button>send</button></form>
<details open ontoggle="window.pwned = 1"><summary>s</summary></details>
<div style="position:fixed;inset:0;background:url(javascript:window.pwned=1)">cover</div>
<link rel="stylesheet" href="https://attacker.example/x.css"><base href="https://attacker.example/">
<meta http-equiv="refresh" content="0;url=https://attacker.example/">
<input autofocus onfocus="window.pwned = 1">

[click](javascript:window.pwned=1) [data](data:text/html,<script>window.pwned=1</script>) [vb](vbscript:x)
![pic](javascript:window.pwned=1) ![remote](https://attacker.example/track.png)
[[x|${ATTACK}]] [[javascript:window.pwned=1]] ![[${ATTACK}]] #tag<script>window.pwned=1</script>
<javascript:window.pwned=1> [ref]

[ref]: javascript:window.pwned=1

$\\href{javascript:window.pwned=1}{x}$ $$\\html{<img src=x onerror=window.pwned=1>}$$

\`\`\`js"><script>window.pwned=1</script>
window.pwned
\`\`\`

| a | b |
|:-:|--:|
| <img src=x onerror=window.pwned=1> | 1 |

> [!warning]<img src=x onerror=window.pwned=1> Title
> text

- [ ] <img src=x onerror=window.pwned=1>
`,
  );
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40" onload="window.pwned=1"><script>window.pwned=1; parent.pwned=1</script><image href="https://attacker.example/track.png"/><circle cx="20" cy="20" r="9"/></svg>`;
  put("attack/drawn.svg", svg);
  put("images/dot.png", Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64"));
  put("attack/images.md", `# Images\n\n![A drawing](drawn.svg) ![[dot.png|120]] <img src="../images/dot.png" alt="raw" onerror="window.pwned=1">\n\n![none](none.png) ![remote](https://attacker.example/a.png) ![](../../../etc/passwd) ![text](markdown.md)\n`);
  put(`attack/<img src=x onerror=window.pwned=1>.md`, "Links to [[markdown]].\n");
  put("attack/linking.md", `See [[markdown|${ATTACK}]] and [text ${ATTACK}](markdown.md).\n`);
}

const place = copied(example);
poisoned(place.vault);
const entity = agent(place, "create_entity", { name: `Entity ${ATTACK}`, entity_type: "T<img src=x onerror=window.pwned=1>", description: ATTACK });
agent(place, "create_observation", { entity_id: entity.entity_id, text_content: `${ATTACK} [[markdown]] [[javascript:window.pwned=1]]` });
const other = agent(place, "create_entity", { name: "Station clock", entity_type: "Concept", force: true });
agent(place, "create_relation", { from_entity_id: other.entity_id, to_entity_id: entity.entity_id, relation_type: `r${ATTACK}` });

const { base, secret, child } = await open(place, "--write");

/* Who may read */
{
  const plain = await fetch(`${base}/api/graph`);
  check("the graph is refused without a token, also on loopback", plain.status === 401, plain.status);
  const guess = await fetch(`${base}/api/graph`, { headers: { authorization: "Bearer qx_guess" } });
  check("a guessed session is refused", guess.status === 401, guess.status);
  const foreign = await fetch(`${base}/api/session`, { method: "POST", headers: { origin: "https://attacker.example" }, body: JSON.stringify({ secret }) });
  check("a page of another origin gets nothing", foreign.status === 403, foreign.status);
  const home = await fetch(base);
  const policy = home.headers.get("content-security-policy") ?? "";
  check("the page has a strict policy and no cookie", /default-src 'none'/.test(policy) && !/unsafe/.test(policy) && !home.headers.get("set-cookie"), policy);
  const text = await home.text();
  check("the page has no inline script or style", !/<script>|<style|style=|onload=/.test(text), text);
}

const { context, page: tab, faults } = await page(browser, { reducedMotion: "reduce" });
let bytes = 0;
tab.on("response", async (response) => {
  bytes += Number((await response.allHeaders())["content-length"] ?? 0);
});
await tab.goto(`${base}/#k=${secret}`);
await tab.waitForSelector(".frame");
check("the first load is at most 250 KB", bytes > 0 && bytes <= 250_000, bytes);
check("the secret is gone from the address", !tab.url().includes(secret), tab.url());
{
  const again = await (await fetch(`${base}/api/session`, { method: "POST", body: JSON.stringify({ secret }) })).json();
  check("the secret works once", !again.token && again.error.message.includes("used"), again);
}

const token = await tab.evaluate(() => sessionStorage.getItem("quipu.session"));
const api = async (path, body) => {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(base + path, body ? { method: "POST", headers, body: JSON.stringify(body) } : { headers });
  return response.json();
};

await isTrue("example vault", api, tab, place);
{
  const sent = await fetch(`${base}/api/graph`, { headers: { authorization: `Bearer ${token}`, "accept-encoding": "gzip" } });
  check("the graph is compressed", sent.headers.get("content-encoding") === "gzip" && (await sent.json()).version);
}

/* Each view: both themes, two widths; axe, console and policy. */
const VIEWS = {
  home: "#/",
  graph: "#/graph",
  search: "#/search/how%20is%20the%20thermometer%20calibrated",
  note: "#/note/station/Ridge%20End.md",
  "attacking note": "#/note/attack/markdown.md",
  "note with an attacking name": "#/note/attack/%3Cimg%20src%3Dx%20onerror%3Dwindow.pwned%3D1%3E.md",
  "missing note": "#/note/not/there.md",
  memory: "#/memory",
  entity: `#/memory/${entity.entity_id}`,
  "search that finds attacks": "#/search/attack",
  duplicates: "#/memory/duplicates",
  changes: "#/changes",
  health: "#/health",
};
const LOOKS = [["light", 1280], ["dark", 1280], ["light", 390], ["dark", 390]];
await everyView(tab, "example vault", VIEWS, LOOKS);
for (const summary of await tab.$$("details summary")) await summary.click();
check("nothing ran", !(await tab.evaluate(() => window.pwned)));
check("nothing was even tried: no violation of the policy", !(await tab.evaluate(() => window.violations)).length, await tab.evaluate(() => window.violations));
await tab.evaluate(() => (location.hash = "#/note/attack/markdown.md"));
await tab.waitForSelector(".prose table");
const links = await tab.$$eval(".prose a[href]", (found) => found.map((link) => link.getAttribute("href")));
check("no link leads to script", links.every((href) => /^(https?:|mailto:|#\/)/.test(href)), links);
check("no picture, frame, form or style is in the note", (await tab.$$(".prose :is(img, iframe, form, input, style, script, svg, base, meta, link, [style])")).length === 0);

/* Images: of the vault alone, and without what an SVG would run */
{
  const requests = [];
  tab.on("request", (request) => requests.push(request.url()));
  await tab.evaluate(() => (location.hash = "#/note/attack/images.md"));
  check("images of the vault are drawn", await until(() => tab.$$eval(".prose img", (images) => images.length === 3 && images.every((image) => image.naturalWidth > 0))));
  check("an image has the width that its link gives", await until(() => tab.$eval('.prose img[width="120"]', (image) => image.getBoundingClientRect().width === 120)));
  check("a missing image is told of", await until(() => tab.$eval(".image-place.missing", (place) => /no such image/.test(place.title))));
  check("the script of an SVG does not run", !(await tab.evaluate(() => window.pwned)));
  check("nothing is asked of other sites", requests.every((url) => url.startsWith(base) || url.startsWith("blob:")), requests);
  const linked = await tab.$$eval(".prose .image-place a.external", (links) => links.map((link) => link.href));
  check("an image of another site is a link", linked.length === 1 && linked[0] === "https://attacker.example/a.png", linked);
}

/* Keyboard alone */
await tab.evaluate(() => (location.hash = "#/"));
await tab.waitForSelector(".view.home .rows a");
await tab.keyboard.press("g");
await tab.keyboard.press("m");
check("g m opens memory", await until(() => tab.evaluate(() => location.hash === "#/memory")));
await tab.keyboard.press("Control+k");
await tab.waitForSelector("dialog.menu[open] input:focus");
await tab.keyboard.type("calib");
await until(() => tab.$eval('[role=option][aria-selected=true] .name', (name) => /calib/i.test(name.textContent)));
await tab.keyboard.press("Enter");
check("the command menu jumps to a note", await until(() => tab.evaluate(() => /Calibrating/.test(decodeURIComponent(location.hash)))), tab.url());
await tab.keyboard.press("/");
await tab.waitForSelector(".search-box input:focus");
await tab.keyboard.type("rain gauge");
await tab.waitForSelector('.result[aria-current="true"]');
await tab.keyboard.press("ArrowDown");
await tab.keyboard.press("ArrowUp");
const first = await tab.$eval('.result[aria-current="true"] .name', (name) => name.textContent);
await tab.keyboard.press("Enter");
check("search results are walked and opened by keys", await until(() => tab.evaluate(() => location.hash.startsWith("#/note/"))), first);
await tab.keyboard.press("?");
check("? shows the keys", await until(() => tab.$("dialog.help[open]")));
await tab.keyboard.press("Escape");
check("Escape closes them", await until(async () => !(await tab.$("dialog.help[open]"))));
await tab.keyboard.press("g");
await tab.keyboard.press("h");
await tab.waitForSelector('.view.home .panel:first-child .rows a[href^="#/note/"]');
await tab.keyboard.press("j");
await tab.keyboard.press("Enter");
check("j and Enter open the first row", await until(() => tab.evaluate(() => location.hash.startsWith("#/note/"))));
await tab.keyboard.press("g");
await tab.keyboard.press("g");
await tab.waitForSelector("[data-drawn]");
await tab.focus(".canvas");
await tab.keyboard.press("n");
check("n selects the most central node and shows it", await until(() => tab.$(".inspector h2")));
await tab.goBack();
check("back takes the selection away", await until(() => tab.evaluate(() => location.hash === "#/graph")), tab.url());
await tab.goBack();
check("back leads to the note again", await until(() => tab.evaluate(() => location.hash.startsWith("#/note/"))));
const before = tab.url();
await tab.reload();
await tab.waitForSelector(".view.note article h1");
check("a reload stays where it was", tab.url() === before, tab.url());

/* Search: facets, two queries, a missing note */
await tab.evaluate(() => (location.hash = "#/search/thermometer"));
await tab.waitForSelector(".result");
check("results can be narrowed by tag", await until(() => tab.$('.facets button:has-text("#")')));
const allResults = await tab.$$eval(".result", (rows) => rows.length);
await tab.click('.facets button:has-text("#") >> nth=0');
check("a tag leaves fewer results", await until(async () => (await tab.$$eval(".result", (rows) => rows.length)) < allResults), allResults);
await tab.click('.facets button[aria-pressed="true"]');
await tab.click(".why-not summary");
await tab.fill(".why-not input", "Ridge End");
await tab.click(".why-not li button >> nth=0");
check("the page says why a note is missing", await until(() => tab.$eval(".why-not .notice", (text) => /result|among/.test(text.textContent))));
await tab.click("text=Compare");
await tab.fill(".comparison input", "rain");
check("two queries are compared", await until(() => tab.$$eval(".compare .move", (moves) => moves.some((move) => move.textContent === "only here"))));

/* Graph: filters stay when the colours change */
await tab.evaluate(() => (location.hash = "#/graph"));
await tab.waitForSelector("[data-drawn]");
await tab.click('.segments button:has-text("Tag")');
await tab.hover(".legend li >> nth=0");
await tab.click(".legend li .only >> nth=0");
const left = await tab.$eval(".legend-head", (head) => head.textContent);
await tab.click('.segments button:has-text("Folder")');
check("a filter by tag stays with other colours", left === (await tab.$eval(".legend-head", (head) => head.textContent)) && !/^(\d+) of \1 /.test(left), left);
await tab.click("text=Clear filters");
await tab.click('.segments button:has-text("Freshness")');
check("colours by freshness name every level", /Stale.*Possibly stale.*Fresh.*Untracked/s.test(await tab.$eval(".legend ul", (list) => list.textContent)));
await tab.click('.segments button:has-text("Groups")');
const covered = await tab.evaluate(() => {
  // At the first picture every node stands beside the legend and below the controls.
  const { sigma, model } = window.quipuScene;
  const [own, legend, controls] = [".canvas", ".legend", ".graph-top"].map((name) => document.querySelector(name).getBoundingClientRect());
  return model.order.filter((node) => {
    const { x, y } = sigma.graphToViewport({ x: model.data.x[node], y: model.data.y[node] });
    const isUnderLegend = x + own.left < legend.right && y + own.top > legend.top;
    return isUnderLegend || y + own.top < controls.bottom || x < 0 || x > own.width || y > own.height;
  });
});
check("the legend covers no node of a small graph", !covered.length, covered);

/* An editor on this machine */
await tab.evaluate(() => (location.hash = "#/note/station/Power.md"));
const editor = await until(() => tab.$eval(".open-in a", (link) => link.href));
check("a note can be opened in an editor", editor === `vscode://file${place.vault}/station/Power.md`, editor);

/* Live */
await tab.evaluate(() => (location.hash = "#/memory"));
await tab.waitForSelector(".entities li");
agent(place, "create_entity", { name: "Written while you watch", entity_type: "Event" });
check("a new entity appears without a reload", await until(() => tab.evaluate(() => document.querySelector(".entities")?.textContent.includes("Written while you watch"))));
await tab.evaluate(() => (location.hash = "#/note/station/Power.md"));
await tab.waitForSelector(".prose");
const power = join(place.vault, "station/Power.md");
writeFileSync(power, `${readFileSync(power, "utf8")}\nA line from another program.\n`);
check("a note that another program changes is shown as it is now", await until(() => tab.evaluate(() => document.querySelector(".prose")?.textContent.includes("A line from another program."))));
await tab.evaluate(() => (location.hash = "#/changes"));
await connectedAgent(place, "test-agent", "create_node", { id: "live.md", content: "See [[Power]].", tags: [] });
const isInFeed = () =>
  tab.evaluate(() => [...document.querySelectorAll(".feed .line")].some((line) => /test-agent.*create_node/.test(line.textContent)));
check("the call of an agent of another process is in the feed", await until(isInFeed));
check("the graph has the new note", await until(async () => (await api("/api/graph")).notes.id.includes("live.md")));

/* Merge, and undo it */
const twins = ["Barometer of the station", "Barometer of the stations"].map((name) => agent(place, "create_entity", { name, entity_type: "Device", observations: ["Both have it.", ...(name.endsWith("s") ? ["Only this one has it."] : [])], force: true }).entity_id);
agent(place, "create_relation", { from_entity_id: twins[1], to_entity_id: other.entity_id, relation_type: "stands_at" });
await tab.evaluate(() => (location.hash = "#/memory/duplicates"));
await tab.click('.pair-head:has-text("Barometer of the stations")');
const known = async () => (await api("/api/call/list_entities", { per_page: 100 })).answer.entities.filter((one) => twins.includes(one.entity_id)).length;
await tab.click('.compared div:has(h3 a:text-is("Barometer of the station")) > button');
const preview = await until(() => tab.$eval(".preview", (view) => view.textContent));
check("a merge is shown before it is done", /After the merge: Barometer of the station.*1 observation and 1 relation move.*also called.*Barometer of the stations.*Barometer of the station stands at Station clock/s.test(preview) && preview.split("Both have it.").length === 2, preview);
{
  const found = await serious(tab);
  check("preview of a merge: axe finds nothing serious", !found.length, found);
}
await tab.click('.preview button:has-text("Cancel")');
check("a merge that is cancelled changes nothing", !(await tab.$(".preview")) && (await known()) === 2);
await tab.click('.compared div:has(h3 a:text-is("Barometer of the station")) > button');
await tab.click('.preview button:has-text("Merge")');
await tab.waitForSelector('.compared .notice:has-text("Merged")');
check("a merge leaves one of the two", await until(async () => (await known()) === 1));
await tab.click('.compared .notice button:has-text("Undo")');
check("undo brings the other back", await until(async () => (await known()) === 2));

/* A new note from the command menu */
await tab.keyboard.press("Control+k");
await tab.waitForSelector("dialog.menu[open] input:focus");
await tab.keyboard.type("Made in the menu");
await tab.click('[role=option]:has-text("New note")');
check("the command menu creates a note", await until(() => tab.evaluate(() => decodeURIComponent(location.hash) === "#/note/made in the menu.md")), tab.url());

/* Edit with the guard */
await tab.evaluate(() => (location.hash = "#/note/live.md"));
await tab.waitForSelector(".prose");
await tab.click("text=Edit");
await tab.fill(".editor textarea", "Edited in the page. See [[Power]].");
await tab.click(".editor .primary");
check("an edit is on disk", await until(async () => readFileSync(join(place.vault, "live.md"), "utf8").includes("Edited in the page.")));

/* Somebody else changes the note meanwhile */
{
  const file = join(place.vault, "live.md");
  const edit = async (text) => {
    await tab.waitForSelector(".prose");
    await tab.click("text=Edit");
    await tab.fill(".editor textarea", text);
  };
  writeFileSync(file, "One.\r\nTwo.\r\n");
  await until(() => tab.evaluate(() => document.querySelector(".prose")?.textContent.includes("Two.")));
  await edit("One.\nTwo, by me.\n");
  writeFileSync(file, "One, by another.\r\nTwo.\r\n");
  check("a conflict shows both texts", await until(() => tab.$eval(".conflict", (view) => /One, by another\..*Two, by me\./s.test(view.textContent))));
  check("and keeps what was typed", (await tab.inputValue(".editor textarea")) === "One.\nTwo, by me.\n");
  check("nothing is written meanwhile", readFileSync(file, "utf8") === "One, by another.\r\nTwo.\r\n");
  const found = await serious(tab);
  check("conflict: axe finds nothing serious", !found.length, found);
  await tab.reload();
  check("a reload keeps the text and the conflict", await until(async () => (await tab.$(".conflict")) && (await tab.inputValue(".editor textarea")) === "One.\nTwo, by me.\n"));
  await tab.fill(".editor textarea", "One, by another.\nTwo, by me.\n");
  await tab.click("text=Save my text");
  check("the joined text is saved, with the line ends of the note", await until(async () => readFileSync(file, "utf8") === "One, by another.\r\nTwo, by me.\r\n"), readFileSync(file, "utf8"));
  await edit("Not wanted.");
  await tab.keyboard.press("Escape");
  await tab.click('.editor .actions button:has-text("Discard")');
  check("a discarded text is gone", await until(async () => !(await tab.$(".editor")) && readFileSync(file, "utf8").includes("by me")));
}

await versions(tab, { place });
await entityHistory(tab, { place });

check("the console is empty", !faults.length, faults);
faults.length = 0;

/* The end of a session */
// On a page without script: a request of the explorer would notice the end before the page is loaded again.
await tab.goto(`${base}/icon.svg`);
await tab.evaluate(() => sessionStorage.setItem("quipu.session", "qx_ended"));
await tab.goto(`${base}/`);
check("the page says that its session ended, and how to get a new one", await until(() => tab.$eval(".sign-in", (view) => /session has ended.*quipu open/s.test(view.textContent))));
await tab.goto(`${base}/#k=${secret}`);
await tab.reload();
check("a link that was used before is told of", await until(() => tab.$eval(".sign-in", (view) => /used already.*quipu open/s.test(view.textContent))));
await context.close();
await stop(child);

/* A page that may only read */
{
  const reading = await open(place);
  const session = await (await fetch(`${reading.base}/api/session`, { method: "POST", body: JSON.stringify({ secret: reading.secret }) })).json();
  const headers = { authorization: `Bearer ${session.token}` };
  const write = await (await fetch(`${reading.base}/api/call/create_node`, { method: "POST", headers, body: JSON.stringify({ id: "no.md", content: "x", tags: [] }) })).json();
  check("without --write nothing is written", /read-only/.test(write.error?.message), write);
  await stop(reading.child);
}

/* The page of a graph of a database. Here the addresses of a folder's server stand below `/g/team/` too. */
{
  const token = quipu(place, "token", "new", "--name", "graph-test", "--scope", "read").trim().split(/\s+/)[0];
  const port = await freePort();
  const { child: server } = await serve(place, port);
  const { context: other, page: tab, faults: seen } = await page(browser);
  const asked = [];
  await other.route("**/g/team/**", (route) => {
    asked.push(new URL(route.request().url()).pathname);
    return route.continue({ url: route.request().url().replace("/g/team/", "/") });
  });
  const elsewhere = [];
  tab.on("request", (request) => /^\/api\//.test(new URL(request.url()).pathname) && elsewhere.push(request.url()));
  await tab.goto(`http://127.0.0.1:${port}/g/team/`);
  await tab.fill("input[type=password]", token);
  await tab.keyboard.press("Enter");
  check("the page of a graph opens with a token", await tab.waitForSelector(".view.home .rows a"));
  check("it asks for the data of that graph alone", !elsewhere.length && asked.includes("/g/team/api/status"), [elsewhere, asked]);
  check("the console is empty on the page of a graph", !seen.length, seen);
  await tab.goto(`http://127.0.0.1:${port}/`);
  check("its token is not used for another graph", await until(() => tab.$(".sign-in")));
  await other.close();
  await stop(server);
}

/* The server goes away and comes back; a token outlives it. */
{
  const words = quipu(place, "token", "new", "--name", "explorer-test", "--scope", "read");
  const text = words.split(/\s+/).find((word) => word.length > 20) ?? words;
  const port = await freePort();
  const { child: firstServer } = await serve(place, port);
  const { context: other, page: tab, faults: seen } = await page(browser);
  await tab.goto(`http://127.0.0.1:${port}/`);
  await tab.fill("input[type=password]", text);
  await tab.keyboard.press("Enter");
  await tab.waitForSelector(".view.home .rows a");
  check("a token opens the explorer of a server", true);
  check("the console is empty with a token", !seen.length, seen);
  await stop(firstServer);
  check("a server that went away is told of", await until(() => tab.$(".banner")));
  check("what was shown stays", await tab.evaluate(() => document.querySelectorAll(".rows a").length > 3));
  writeFileSync(join(place.vault, "while-away.md"), "# Written while it was away\n");
  const { child: second } = await serve(place, port);
  check("it comes back by itself", await until(async () => !(await tab.$(".banner")), 30_000));
  check("and shows what changed meanwhile", await until(() => tab.evaluate(() => document.body.textContent.includes("While Away"))));
  await other.close();
  await stop(second);
}

/* A real vault, with a memory of its own: every view, by keyboard, live */
if (real) {
  const place = copied(real);
  const { tab, ask, faults, close } = await explorer(browser, place, "--write");
  await seedMemory(ask);
  const { notes } = await ask("/api/status");
  const counted = () => tab.evaluate((number) => document.querySelector("footer.status").textContent.startsWith(`${number} notes`), notes.toLocaleString("en"));
  check("real vault: the counts follow while it is read", await until(counted), notes);
  const seen = await isTrue("real vault", ask, tab, place);
  check("real vault: its memory is in the picture", seen.entities === 6 && seen.relations === 6 && seen.mentions === 12, seen);
  const { notes: columns, entities } = await ask("/api/graph");
  const central = columns.id[columns.rank.indexOf(Math.max(...columns.rank))];
  const views = {
    home: "#/",
    graph: "#/graph",
    "graph around a note": `#/graph/note/${central}`,
    search: "#/search/how do I link notes",
    note: `#/note/${central}`,
    memory: "#/memory",
    entity: `#/memory/${entities.id[0]}`,
    changes: "#/changes",
    health: "#/health",
  };
  await everyView(tab, "real vault", views, LOOKS);
  await visit(tab, "#/graph");
  for (const ratio of [1, 0.4, 0.15, 0.05]) {
    await tab.evaluate(async (ratio) => {
      const scene = window.quipuScene;
      const { x, y } = scene.sigma.getNodeDisplayData(scene.model.order[0]);
      scene.setCamera({ x, y, angle: 0, ratio });
      for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
    }, ratio);
    const labels = await tab.evaluate(() => window.quipuScene.overlay.written.length);
    const pairs = await overlapping(tab);
    check(`real vault: labels do not overlap at a zoom of ${ratio}`, labels > 0 && !pairs.length, [labels, pairs]);
  }
  const groups = await tab.evaluate(() => window.quipuScene.model.communities.map(({ label }) => label));
  check("real vault: no two groups have one name", new Set(groups).size === groups.length, groups);
  await tab.click('.segments button:has-text("Folder")');
  if (await tab.$('.legend button:has-text("Show all")')) {
    await tab.click('.legend button:has-text("Show all") >> nth=0');
    const all = await tab.$$eval(".legend ul.all li", (rows) => rows.length);
    check("real vault: the legend shows all of its rows", all > 9, all);
  }
  await tab.keyboard.press("Control+k");
  await tab.waitForSelector("dialog.menu[open] input:focus");
  await tab.keyboard.type(columns.title[columns.id.indexOf(central)]);
  await until(() => tab.$("[role=option][aria-selected=true]"));
  await tab.keyboard.press("Enter");
  check("real vault: the command menu jumps to a note", await until(() => tab.evaluate(() => location.hash.startsWith("#/note/"))), tab.url());
  writeFileSync(join(place.vault, "written while you watch.md"), "# Written while you watch\n");
  check("real vault: a new note is in the graph", await until(async () => (await ask("/api/graph")).notes.id.includes("written while you watch.md")));
  check("real vault: and in the count", await until(() => tab.evaluate((number) => document.querySelector("footer.status").textContent.startsWith(`${number} notes`), (notes + 1).toLocaleString("en"))));
  check("real vault: the console is empty", !faults.length, faults);
  await close();
  await realVault(browser, real);
}

/* The picture of every other real vault */
for (const vault of reals) {
  const place = copied(vault);
  const { tab, ask, faults, close } = await explorer(browser, place, "--write");
  await seedMemory(ask);
  await isTrue(basename(vault), ask, tab, place);
  check(`${basename(vault)}: the console is empty`, !faults.length, faults);
  await close();
}

await colours();
await searchView(browser);
await graphView(browser);
await noteView(browser);
await changesView(browser);
await picturePage(browser);
await states(browser);
await partFailures(browser);
await loading(browser);
await behaviour(browser);
await hostile(browser);
await chat(browser, place);

await browser.close();
finish();
