// Notes made to freeze the tab: what a renderer with a quadratic step would chew on for minutes.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { check, copied, open, page, stop, until } from "./session.mjs";

const CHARS = 400_000;
/** Text of this size takes a fraction of it; a step that looks at the rest of the note for each character takes many times as long. */
const LIMIT_MS = 20_000;
const repeated = (text) => text.repeat(Math.ceil(CHARS / text.length));

const NOTES = {
  "open wikilinks": repeated("[["),
  "open wikilinks with text": repeated("[[a|"),
  "open links": repeated("[a]("),
  "open brackets": repeated("["),
  "open tags": `<div>\n${repeated("<a ")}`,
  "open tags inline": `x ${repeated("<a ")}`,
  "open attributes": `<div>\n${repeated("<a b='")}`,
  "attributes without end": `<div>\n<a ${repeated("b ")}`,
  "open comments": `x ${repeated("<!-- ")}`,
  "open comment blocks": repeated("<!--\n\n"),
  "open comments of Obsidian": repeated("%% a\n"),
  "open cdata": `x ${repeated("<![CDATA[ ")}`,
  "open instructions": `x ${repeated("<? ")}`,
  "script elements": `<div>\n${repeated("<script>")}`,
  "closed script elements": `<div>\n${repeated("<script></script >")}`,
  "equal headings": repeated("# a\n"),
  "a link of slashes": `[x](${repeated("a/")})`,
  formulas: repeated("$a "),
  "open formulas": repeated("$$a "),
  emphasis: repeated("*a _"),
  backticks: repeated("` ``"),
  quotes: repeated("> ").slice(0, 2_000) + repeated("\n>"),
  "nested lists": Array.from({ length: 600 }, (_, depth) => `${" ".repeat(2 * depth)}- a`).join("\n"),
  "task boxes": repeated("- [ ] #1\n"),
  "number signs": repeated(" #1"),
  "table cells": `|a|\n|-|\n${repeated("|")}`,
  addresses: repeated("http://a.b/ "),
  "open formula blocks in a list": repeated("- $$\n"),
  "open formula blocks before lists": repeated("$$\n- "),
  "a link of slashes and a letter": `[x](${repeated("/")}a)`,
  "a link of slashes and a line": `x <a href="a${repeated("/")}\n:">x</a>`,
  "an image of question marks and a line": `x <img src="${repeated("?")}\n">`,
  "elements that stay open": Array.from({ length: 10_000 }, (_, n) => `<b title="${n}">`).join(" ") + repeated("\n\nx"),
  "nested elements": `<div>\n${repeated("<div>a")}`,
  "nested tables": `<div>\n${repeated("<table><tr><td>")}`,
  "wide cells": `<table><tr>\n${repeated("<td colspan=1000>x")}`,
  "tall cells": `<table>\n${repeated("<tr><td rowspan=65534>x")}`,
  "cells of one row": `<table><tr>\n${repeated("<td>x")}`,
  "text of either direction": `<div dir=auto>\n${repeated("1<br>")}`,
  "text of both directions": repeated("א a "),
  "letters that are joined": repeated("ش"),
  "one letter with many marks": `a${repeated("\u0301")}`,
  "a property of open links": `---\nlinks: "${repeated("[[")}"\n---\nx`,
  "marks": repeated("==a"),
  "entities": repeated("&amp"),
  // As long as a block may be that is coloured, for each way to cut code.
  code: ["css -", "yaml ", "yaml - ", "yaml a.", "yaml 1", 'json "a" ', 'json "\\', "rust '", "js `", "js /* ", 'sh "\\', "sh --", "py '''", "sql --", "html <!-- ", "html <a", "diff +"]
    .map((part) => `\`\`\`\`${part.split(" ")[0]}\n${(part.slice(part.indexOf(" ") + 1) || " ").repeat(50_000).slice(0, 50_000)}\n\`\`\`\`\n`)
    .join("\n"),
};

/** Whether something is so before the limit. A tab that is frozen answers nothing, not even that it is not. */
async function inTime(what) {
  let timer;
  const late = new Promise((resolve) => (timer = setTimeout(resolve, LIMIT_MS, false)));
  const seen = await Promise.race([until(what, LIMIT_MS), late]);
  clearTimeout(timer);
  return seen;
}

export async function hostile(browser) {
  const place = copied(null);
  mkdirSync(place.vault, { recursive: true });
  Object.entries(NOTES).forEach(([, text], n) => writeFileSync(join(place.vault, `n${n}.md`), `${text}\n`));
  writeFileSync(join(place.vault, "plain.md"), "# Plain\n\nText.\n");
  const { base, secret, child } = await open(place);
  const { page: tab, context, faults } = await page(browser);
  await tab.goto(`${base}/#k=${secret}`);
  await tab.waitForSelector(".frame");
  for (const [n, name] of Object.keys(NOTES).entries()) {
    await tab.evaluate(() => (location.hash = "#/note/plain.md"));
    await tab.waitForSelector(".prose p");
    const start = Date.now();
    await tab.evaluate((to) => (location.hash = to), `#/note/n${n}.md`);
    const path = `n${n}.md`;
    const isShown = await inTime(() => tab.evaluate((path) => document.querySelector(".crumbs")?.textContent === path && !!document.querySelector(".prose"), path));
    check(`a note of ${name} is shown in time`, isShown, Date.now() - start);
    if (process.env.TIMES) console.log(`${name}: ${Date.now() - start} ms`);
    if (!isShown) break;
  }
  check("hostile notes: the console is empty", !faults.length, faults);
  await context.close();
  await stop(child);
}
