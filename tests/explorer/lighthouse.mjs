// Lighthouse's score for accessibility, of each view. It is installed for measurements alone: see `lighthouse/package.json`.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { CHROMIUM } from "./session.mjs";

/** The score of each view. Null where Lighthouse is not installed. */
export async function accessibility(base, token, note, query) {
  const folder = process.env.LIGHTHOUSE;
  if (!folder) return null;
  const require = createRequire(`${folder}/`);
  const module = async (name) => import(pathToFileURL(require.resolve(name)).href);
  const { snapshot } = await module("lighthouse");
  const { version } = require("lighthouse/package.json");
  const { default: puppeteer } = await module("puppeteer-core");
  const browser = await puppeteer.launch(CHROMIUM);
  const views = ["", "graph", `search/${encodeURIComponent(query)}`, `note/${note.split("/").map(encodeURIComponent).join("/")}`, "memory", "changes", "health"];
  const scores = [];
  for (const view of views) {
    const tab = await browser.newPage();
    await tab.setViewport({ width: 1280, height: 800 });
    await tab.evaluateOnNewDocument((token) => sessionStorage.setItem("quipu.session", token), token);
    await tab.goto(`${base}/#/${view}`);
    await tab.waitForFunction(() => document.querySelector("main h1, main h2") && !document.querySelector("main .skeleton, main [aria-busy=true]"), { timeout: 60_000 });
    const { lhr } = await snapshot(tab, { config: { extends: "lighthouse:default", settings: { onlyCategories: ["accessibility"] } } });
    scores.push({ view: view.split("/")[0] || "home", score: Math.round(100 * lhr.categories.accessibility.score) });
    await tab.close();
  }
  await browser.close();
  return { version, scores };
}
