// `quipu picture` as one HTML file, opened from the disk: dark and light, by keys alone.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { check, page, quipu, serious, temporary, until, written } from "./session.mjs";

const FILES = {
  "one.md": "See [[two]] and [[three]].\n",
  "two.md": "Nothing.\n",
  "three.md": "Nothing.\n",
  "four <script>window.pwned=1</script>.md": "Nothing.\n",
};

export async function picturePage(browser) {
  const file = join(temporary(), "graph.html");
  quipu(written(FILES), "picture", "--format", "html", "--output", file);
  const { page: tab, context, faults } = await page(browser);
  const colour = (selector, name) => tab.$eval(selector, (element, name) => getComputedStyle(element)[name], name);
  const seen = [];
  for (const theme of ["light", "dark"]) {
    await tab.emulateMedia({ colorScheme: theme });
    await tab.goto(pathToFileURL(file).href);
    const found = await serious(tab);
    check(`picture page, ${theme}: axe finds nothing serious`, !found.length, found);
    seen.push([await colour("body", "backgroundColor"), await colour(".back", "fill"), await colour(".labels", "fill"), await colour(".node", "fill")]);
  }
  check("the picture page follows the theme", seen[0].every((part, at) => part !== seen[1][at]) && seen[1][0] === seen[1][1], seen);

  const view = () => tab.evaluate(() => ["x", "y", "width"].map((name) => Math.round(document.querySelector("svg").viewBox.baseVal[name])).join());
  const whole = await view();
  await tab.keyboard.press("Tab");
  check("the picture has the focus first", await tab.evaluate(() => document.activeElement.tagName === "svg"));
  for (const key of ["ArrowRight", "+", "0"]) {
    const before = await view();
    await tab.keyboard.press(key);
    check(`picture page: ${key} moves the view`, (await view()) !== before);
  }
  check("0 shows all again", (await view()) === whole, [whole, await view()]);
  await tab.keyboard.press("n");
  const about = () => tab.$eval(".about", (text) => text.textContent);
  check("n selects a node and says what it is", await until(async () => /· \d+ neighbors?$/.test(await about())), await about());
  await tab.keyboard.press("/");
  await tab.keyboard.type("one");
  check("a node is found by its name, with its neighbors", await until(async () => /^One .*2 neighbors$/.test(await about())), await about());
  const lit = await tab.$$eval(".node.lit", (nodes) => nodes.length);
  check("its neighbors stand out", lit === 3 && (await tab.$$(".lit-link")).length === 2, lit);
  await tab.keyboard.press("Escape");
  check("Escape clears the selection", (await about()) === "" && !(await tab.$(".node.lit")));
  await tab.click(".node >> nth=1");
  check("a click selects a node", await until(async () => (await about()) !== ""));
  check("the picture page runs nothing foreign, and its console is empty", !(await tab.evaluate(() => window.pwned)) && !faults.length, faults);
  await context.close();
}
