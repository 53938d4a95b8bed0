// The view inside a chat, shown by the reference host of the official package (`AppBridge`).
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { check, modules, page, serious, talk, until } from "./session.mjs";

const require = createRequire(`${modules}/`);
const HOST = `import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge"; window.host = { AppBridge, PostMessageTransport };`;

/** Words of the view that share a place with others, or with a node. */
const overlapping = () => {
  const boxes = (selector) => [...document.querySelectorAll(selector)].map((one) => [one.textContent, one.getBoundingClientRect()]);
  // A box of text is higher than its letters.
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top + 2 < b.bottom - 2 && b.top + 2 < a.bottom - 2;
  const texts = boxes("svg text");
  const nodes = boxes("svg .node");
  const pairs = texts.flatMap(([text, box], n) => texts.slice(n + 1).filter(([, other]) => meet(box, other)).map(([other]) => [text, other]));
  return [...pairs, ...texts.flatMap(([text, box]) => nodes.filter(([, node]) => meet(box, node)).map(([node]) => [text, `on ${node}`]))];
};

const CALLS = [
  ["ubp_get_graph", {}, /\d+ nodes, \d+ links/],
  ["get_neighbors", { id: "station/anemometer.md" }, /station\/anemometer\.md[\s\S]*\d+ links/],
  ["ubp_get_graph", { center: "station/Anemometer.md", depth: 1 }, /\d+ nodes, \d+ links/],
  ["find_path", { source: "Start Here.md", target: "station/Rain Gauge.md" }, /start here\.md[\s\S]*2 links/],
  ["find_path", { source: "Start Here.md", target: "alone in the chat.md" }, /^No path of links leads from Start Here\.md to alone in the chat\.md\.$/],
  ["search", { query: "thermometer" }, /Calibrating the Thermometer/],
  ["search", { query: "crowdword" }, /Crowded note/],
  ["suggest_merges", { threshold: 0.9 }, /and|look alike/],
];

export async function chat(browser, place) {
  const { build } = require("esbuild");
  const bundled = await build({ stdin: { contents: HOST, resolveDir: modules }, bundle: true, format: "iife", platform: "browser", write: false, logLevel: "silent" });
  // As many nodes as an agent asks for, in a few groups: each note links to those beside it and to the first of its group.
  for (let n = 0; n < 52; n++) {
    const group = 13 * Math.floor(n / 13);
    writeFileSync(join(place.vault, `crowd-${n}.md`), `# Crowded note number ${n}\n\n**Bold** [[crowd-${n + 1}]] [[crowd-${group}]] crowdword\n\n\`\`\`\ncode\n\`\`\`\n`);
  }
  writeFileSync(join(place.vault, "alone in the chat.md"), "No link.\n");
  const answers = await talk(place, [
    ["tools/list", {}],
    ["resources/read", { uri: "ui://quipu/view.html" }],
    ...CALLS.map(([name, args]) => ["tools/call", { name, arguments: args }]),
  ]);
  const [listed, view, ...results] = answers.map((answer) => answer.result);
  const [{ text: html, mimeType }] = view.contents;
  check("the view has the type of MCP Apps and is at most 150 KB", mimeType === "text/html;profile=mcp-app" && html.length <= 150_000, [mimeType, html.length]);
  // Each in the dark; a picture and a list in the light too.
  const looks = [...CALLS.entries()].flatMap(([at, row]) => [[at, row, "dark"], ...(["ubp_get_graph", "search"].includes(row[0]) ? [[at, row, "light"]] : [])]);
  for (const [at, [name, args, expected], theme] of looks) {
    const tool = listed.tools.find((tool) => tool.name === name);
    check(`${name} names its view`, tool?._meta?.ui?.resourceUri === "ui://quipu/view.html", tool?._meta);
    const { context, page: tab, faults } = await page(browser);
    await tab.goto("about:blank");
    await tab.addScriptTag({ content: bundled.outputFiles[0].text });
    await tab.evaluate(
      async ({ html, tool, args, result, theme }) => {
        const frame = document.createElement("iframe");
        frame.setAttribute("sandbox", "allow-scripts");
        frame.style.cssText = "width:760px;height:500px";
        window.messages = [];
        const { AppBridge, PostMessageTransport } = window.host;
        const bridge = new AppBridge(null, { name: "test-host", version: "1" }, {}, { hostContext: { theme, toolInfo: { tool } } });
        bridge.oninitialized = () => {
          bridge.sendToolInput({ arguments: args });
          bridge.sendToolResult(result);
        };
        bridge.onsizechange = (size) => (window.size = size);
        bridge.onmessage = async (message) => {
          window.messages.push(message);
          return {};
        };
        document.body.append(frame);
        await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
        frame.srcdoc = html;
      },
      { html, tool, args, result: results[at], theme },
    );
    const shown = () => tab.frames()[1]?.evaluate(() => document.getElementById("view")?.textContent);
    const text = await until(async () => ((await shown()) ?? "").match(expected) && shown());
    check(`${name} is shown in the reference host`, text, await shown().catch(String));
    check(`${name}: it has the host's theme`, (await tab.frames()[1].evaluate(() => document.documentElement.dataset.theme)) === theme);
    const found = await serious(tab.frames()[1]);
    check(`${name}, ${theme}: axe finds nothing serious`, !found.length, found);
    check(`${name}: the host learns the size`, await until(() => tab.evaluate(() => window.size?.height > 20)));
    if (args.center) {
      const centres = await tab.frames()[1].$$eval(".centre", (nodes) => nodes.map((node) => node.textContent));
      check("the centre of a graph is marked, also where its path was given", centres.join() === "Anemometer", centres);
    } else if (name === "ubp_get_graph") {
      const nodes = results[at].structuredContent.nodes.length;
      const drawn = await tab.frames()[1].evaluate(() => [document.querySelectorAll("svg .node").length, document.querySelectorAll("svg text").length]);
      check("a graph of many nodes is drawn whole, most of them with their names", nodes > 40 && drawn[0] === nodes && drawn[1] > nodes / 2, [nodes, drawn]);
      const pairs = await tab.frames()[1].evaluate(overlapping);
      check("no name in the chat's graph stands on another or on a node", !pairs.length, pairs);
    }
    if (name === "search") check("excerpts in the chat have no marks of Markdown", !/\*\*|```|\[\[|^#+ /m.test(text), text);
    const first = await tab.frames()[1].$("button, .node");
    if (first) {
      await first.click();
      check(`${name}: a click asks the agent`, await until(() => tab.evaluate(() => window.messages.length === 1)));
    }
    check(`${name}: no script of a note ran in the view`, !(await tab.frames()[1].evaluate(() => window.pwned)) && !faults.length, faults);
    await context.close();
  }
}
