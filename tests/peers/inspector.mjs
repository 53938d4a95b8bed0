// The inspector's command line against the built binary: inspector.mjs BINARY INSPECTOR
//
// Each question is a process of its own, as a person at a shell would ask it. `--strict` lets the inspector judge the tool
// schemas by what other clients are known to refuse. Prints the totals alone on the last line.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [binary, inspector] = process.argv.slice(2);
const vault = mkdtempSync(join(tmpdir(), "quipu-inspector-"));
mkdirSync(join(vault, "knots"));
writeFileSync(join(vault, "anchors.md"), "An anchor holds. [[bowline]]\n");
writeFileSync(join(vault, "knots", "bowline.md"), "---\ntags: [knot]\n---\n\nThe rabbit comes out of the hole.\n");

let passed = 0;
let failed = 0;
function check(name, question, holds) {
  let answer;
  try {
    const text = execFileSync(process.execPath, [inspector, "--cli", binary, "serve", vault, ...question], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "inherit"],
      timeout: 60_000,
      env: { ...process.env, MCP_CATALOG_PATH: join(vault, ".quipu", "inspector.json") },
    });
    answer = JSON.parse(text);
    if (!holds(answer)) throw new Error("not as expected");
    passed += 1;
    console.log(`ok  ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}: ${error.message}\n${JSON.stringify(answer, null, 1) ?? error.stdout ?? ""}`);
  }
}
const call = (tool, ...pairs) => [
  "--method",
  "tools/call",
  "--tool-name",
  tool,
  ...pairs.flatMap((pair) => ["--tool-arg", pair]),
];
const said = (result) => JSON.parse(result.content[0].text);

check("the tools' schemas travel well", ["--method", "tools/list", "--strict"], (a) => a.tools.some((tool) => tool.name === "edit_node"));
check("a note is found", call("get_node", "id=anchors.md"), (a) => said(a).links[0].id === "knots/bowline.md");
check("a number is taken", call("get_hubs", "limit=1"), (a) => said(a)[0].score === 1);
check("a list is taken", call("search_by_tags", 'tags=["knot"]'), (a) => said(a)[0].id === "knots/bowline.md");
check("words are found", call("search_docs", "query=rabbit"), (a) => said(a).total === 1);
check("notes are resources", ["--method", "resources/list"], (a) => a.resources.length === 2);
check(
  "a resource is the file",
  ["--method", "resources/read", "--uri", "quipu://note/anchors.md"],
  (a) => a.contents[0].text === "An anchor holds. [[bowline]]\n",
);

rmSync(vault, { recursive: true });
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
