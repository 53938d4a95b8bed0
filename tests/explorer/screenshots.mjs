// Screenshots for README.md and docs/explorer.md: screenshots.mjs BINARY MODULES EXAMPLE_VAULT FOLDER
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { agent, copied, example, launch, open, page, stop, until } from "./session.mjs";

const folder = process.argv[5];
mkdirSync(folder, { recursive: true });

const place = copied(example, "weather-notes");
const remember = (name, entity_type, description, observations) =>
  agent(place, "create_entity", { name, entity_type, description, observations, force: true }).entity_id;
const relate = (from_entity_id, relation_type, to_entity_id) => agent(place, "create_relation", { from_entity_id, relation_type, to_entity_id });
const station = remember("Ridge End", "Place", "Weather station on the ridge, six metres above the hedge.", [
  "The [[Anemometer]] froze in February 2025.",
  "The [[Rain Gauge]] was moved two metres south.",
  "Batteries last five days without sun, see [[Power]].",
]);
const haruka = remember("Haruka Sato", "Person", "Runs the station in Matsumoto.", ["Compares her pressure readings with Ridge End every Monday."]);
const ice = remember("Ice point", "Method", "Melting ice as the reference of a thermometer.", ["Described in [[Calibrating the Thermometer]]."]);
const frost = remember("Frost of February 2025", "Event", "The night in which the vane stood still.", ["Eleven degrees of frost, see [[2025-02-11]]."]);
relate(haruka, "compares_with", station);
relate(ice, "used_at", station);
relate(station, "was_hit_by", frost);

const { base, secret, child } = await open(place);
const browser = await launch();
const { page: tab, faults } = await page(browser, { reducedMotion: "reduce", viewport: { width: 1280, height: 760 } });
await tab.goto(`${base}/#k=${secret}`);
await tab.waitForSelector(".frame");

const SHOTS = [
  ["graph-light", "light", "#/graph"],
  ["graph-dark", "dark", "#/graph/note/station/Anemometer.md"],
  ["search", "light", "#/search/how%20is%20the%20thermometer%20calibrated"],
  ["note", "light", "#/note/station/Data%20Logger.md"],
  ["memory", "dark", `#/memory/${station}`],
];
for (const [name, theme, address] of SHOTS) {
  await tab.emulateMedia({ colorScheme: theme });
  await tab.evaluate((to) => (location.hash = to), address);
  if (address.startsWith("#/graph")) await tab.waitForSelector("[data-drawn]");
  await until(() => tab.evaluate(() => !document.querySelector("main .skeleton, main [aria-busy=true]")));
  await tab.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  await tab.screenshot({ path: join(folder, `${name}.png`) });
  console.log(`${name}.png`);
}
if (faults.length) throw new Error(faults.join("\n"));
await browser.close();
await stop(child);
