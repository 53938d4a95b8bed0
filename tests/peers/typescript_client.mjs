// The official TypeScript clients over HTTP, both generations: typescript_client.mjs URL NODE_MODULES TOKEN
//
// `@modelcontextprotocol/sdk` opens a session with `initialize`; `@modelcontextprotocol/client` asks `server/discover` and
// sends each request by itself. Both validate what they get against the protocol's schemas. Prints the totals alone on the last
// line.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [url, modules, token] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const load = async (name) => import(pathToFileURL(require.resolve(name)));

let passed = 0;
let failed = 0;
function check(name, held, seen) {
  held ? (passed += 1) : (failed += 1);
  console.log(held ? `ok  ${name}` : `FAILED  ${name}: ${JSON.stringify(seen)}`);
}

const requestInit = { headers: { Authorization: `Bearer ${token}` } };
const info = { name: "typescript", version: "1" };
const ADDRESS = "quipu://note/anchors.md";

// A promise that a notice settles, and that fails when none comes.
function notice(register) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("no notice came")), 20_000);
    register((message) => {
      clearTimeout(timer);
      resolve(message);
    });
  });
}

async function talk(generation, client, other) {
  const { tools } = await client.listTools();
  const names = tools.map((tool) => tool.name);
  const wanted = ["search", "get_node", "ubp_search", "edit_node", "move_node", "query_nodes", "create_entity", "undo_change"];
  check(`${generation}: the tools of every toolset are listed`, wanted.every((name) => names.includes(name)), names);
  const read = await client.callTool({ name: "get_node", arguments: { id: "anchors.md" } });
  check(`${generation}: a note is found`, read.structuredContent?.id === "anchors.md", read);
  const list = await client.callTool({ name: "get_hubs", arguments: { limit: 1 } });
  check(`${generation}: a list is answered`, JSON.parse(list.content[0].text).length === 1, list);
  const wrong = await client.callTool({ name: "get_hubs", arguments: { limit: 51 } });
  check(`${generation}: a wrong argument is a result that says so`, wrong.isError === true, wrong);
  const { resources } = await client.listResources();
  check(`${generation}: every note is a resource`, resources.length === 2, resources);
  const { contents } = await client.readResource({ uri: ADDRESS });
  check(`${generation}: a resource is the file`, contents[0].text.startsWith("An anchor holds."), contents);
  const { completion } = await client.complete({
    ref: { type: "ref/resource", uri: "quipu://note/{+id}" },
    argument: { name: "id", value: "kn" },
  });
  check(`${generation}: an id is completed`, completion.values[0] === "knots.md", completion);
  const calls = Array.from({ length: 50 }, (_, number) =>
    client.callTool({ name: "nodes_exist", arguments: { ids: [`${number}.md`] } }),
  );
  const many = await Promise.all(calls);
  const own = many.every((answer, number) => `${number}.md` in answer.structuredContent);
  check(`${generation}: fifty calls at once get fifty answers, each its own`, own);
  await other(client);
}

async function told(generation, client, changed) {
  const text = `An anchor holds. ${generation} ${Date.now()}\n`;
  await client.callTool({ name: "get_document", arguments: { path: "anchors.md" } });
  const answer = await client.callTool({ name: "update_node", arguments: { id: "anchors.md", content: text } });
  check(`${generation}: a note is changed`, answer.isError !== true, answer);
  const seen = await changed.catch((error) => String(error));
  check(`${generation}: and its change is told`, seen?.params?.uri === ADDRESS, seen);
}

{
  const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
  const { StreamableHTTPClientTransport } = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const { ResourceUpdatedNotificationSchema } = await load("@modelcontextprotocol/sdk/types.js");
  const client = new Client(info);
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit });
  await client.connect(transport);
  check("first generation: a session is opened", Boolean(transport.sessionId), transport.sessionId);
  await talk("first generation", client, async () => {
    await client.subscribeResource({ uri: ADDRESS });
    const changed = notice((hear) => client.setNotificationHandler(ResourceUpdatedNotificationSchema, hear));
    await told("first generation", client, changed);
  });
  await transport.terminateSession();
  await client.close();
}

{
  const { Client, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client");
  const client = new Client(info, { versionNegotiation: { mode: "auto" } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
  const version = client.getNegotiatedProtocolVersion();
  check("newest: the newest protocol is agreed on", version === "2026-07-28", version);
  await talk("newest", client, async () => {
    const changed = notice((hear) => client.setNotificationHandler("notifications/resources/updated", hear));
    const subscription = await client.listen({ resourceSubscriptions: [ADDRESS] });
    await told("newest", client, changed);
    await subscription.close();
  });
  await client.close();
}

console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
