// What a note may hold, drawn as it is meant; what a person does with the mouse, on a phone, and with the theme.
import { check, explorer, until, visit, written } from "./session.mjs";

const FILES = {
  "guides/one.md": "---\ndoc_type: guide\n---\nBarometer. See [[two]].\n",
  "guides/two.md": "---\ndoc_type: guide\n---\n# Two\n\nBarometer here.\n",
  "logs/three.md": "---\ndoc_type: spec\n---\nBarometer there.\n",
  "rich.md": `> [!warning] Mind the gap
> Text of it.

- [ ] to be done
- [x] was done

It is $x^2$ here.

$$
\\frac{1}{2}
$$

![[two]]
`,
};

export async function behaviour(browser) {
  const { tab, faults, close } = await explorer(browser, written(FILES));
  await rendered(tab);
  await found(tab);
  await opened(tab);
  await narrowed(tab);
  await theme(tab);
  await phone(tab);
  check("behaviour: the console is empty", !faults.length, faults);
  await close();
}

async function rendered(tab) {
  await visit(tab, "#/note/rich.md");
  const callout = await until(() => tab.$eval('.prose .callout[data-kind="warning"]', (quote) => quote.textContent));
  check("a callout has its title and its text", /Mind the gap\s*Text of it\./.test(callout), callout);
  const tasks = await tab.$$eval(".prose .task", (boxes) => boxes.map((box) => `${box.getAttribute("aria-label")}:${box.parentElement.textContent.trim()}`));
  check("tasks are boxes that say their state", tasks.join() === "to do:to be done,done:was done", tasks);
  const formulas = () => tab.$$eval(".prose .math math", (all) => all.map((one) => one.querySelector("msup, mfrac")?.localName));
  check("formulas are MathML, inline and as blocks", await until(async () => (await formulas()).join() === "msup,mfrac"), await formulas());
  const embed = await until(() => tab.$eval(".prose .embed", (frame) => frame.textContent));
  check("an embedded note is shown with its title", /Two.*Barometer here\./s.test(embed), embed);
}

const state = (tab, read) => tab.evaluate(`(() => { const scene = window.quipuScene; const { model } = scene; return (${read}); })()`);

async function found(tab) {
  await visit(tab, "#/graph");
  await tab.fill('.graph-search input', "thr");
  const matches = () => state(tab, `[...(scene.shown.matches ?? [])].map((node) => model.names[node]).join()`);
  check("letters in the graph's field mark the nodes that have them", await until(async () => (await matches()) === "Three"), await matches());
  check("they are in the address", await until(() => tab.evaluate(() => /[?&]find=thr/.test(location.hash))), tab.url());
  await tab.reload();
  await tab.waitForSelector("[data-drawn]");
  check("and a reload marks the same", await until(async () => (await matches()) === "Three"), await matches());
  await tab.fill('.graph-search input', "");
  check("without letters no node is marked", await until(() => state(tab, "scene.shown.matches === null")));
}

async function opened(tab) {
  await visit(tab, "#/");
  await visit(tab, "#/graph");
  await tab.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  const [x, y] = await tab.evaluate(() => {
    const { sigma, model } = window.quipuScene;
    const node = model.places.get("guides/one.md");
    const { x, y } = sigma.graphToViewport({ x: model.data.x[node], y: model.data.y[node] });
    const own = document.querySelector(".canvas").getBoundingClientRect();
    return [x + own.left, y + own.top];
  });
  await tab.mouse.dblclick(x, y);
  check("a double click on a node opens its note", await until(() => tab.evaluate(() => location.hash === "#/note/guides/one.md")), tab.url());
}

async function narrowed(tab) {
  await visit(tab, "#/search/barometer");
  const names = () => tab.$$eval(".result .name", (rows) => rows.map((row) => row.textContent).sort().join());
  await until(async () => /One,.*Three,Two/.test(await names()));
  const all = await names();
  for (const [facet, value, left] of [["Folder", "logs", "Three"], ["Type", "guide", "One,Two"]]) {
    const button = `.facets section:has(h2:text-is("${facet}")) button:has-text("${value}")`;
    await tab.click(button);
    check(`results can be narrowed by ${facet.toLowerCase()}`, await until(async () => (await names()) === left), await names());
    await tab.click(button);
    await until(async () => (await names()) === all);
  }
}

async function theme(tab) {
  await visit(tab, "#/");
  const shown = () => tab.evaluate(() => document.documentElement.dataset.theme);
  const before = await shown();
  await tab.keyboard.press("t");
  const after = before === "dark" ? "light" : "dark";
  check("t changes the theme", await until(async () => (await shown()) === after), await shown());
  await tab.reload();
  await tab.waitForSelector(".frame");
  check("a reload keeps the theme", (await shown()) === after, await shown());
  await tab.keyboard.press("t");
  check("t brings the other back", await until(async () => (await shown()) === before), await shown());
  await tab.evaluate(() => localStorage.removeItem("quipu.theme"));
}

async function phone(tab) {
  await tab.setViewportSize({ width: 390, height: 800 });
  await visit(tab, "#/graph/note/guides/two.md");
  const sheet = await until(() => tab.$eval(".inspector", (view) => (view.querySelector("h2") ? view.getBoundingClientRect().toJSON() : null)));
  check("on a phone what is selected is a sheet at the lower end", sheet && sheet.left === 0 && sheet.right === 390 && Math.round(sheet.bottom) === 800 && sheet.top >= 800 * 0.39, sheet);
  await tab.setViewportSize({ width: 1280, height: 800 });
}
