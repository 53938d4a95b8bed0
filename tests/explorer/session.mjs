// What the scripts here share: a server over a copied vault, a browser, and a tally.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

export const [binary, modules, example, real, ...reals] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const { chromium } = require("playwright-core");
export const axeSource = require.resolve("axe-core/axe.min.js");

let passed = 0;
let failed = 0;
export function check(name, held, seen) {
  held ? (passed += 1) : (failed += 1);
  console.log(held ? `ok  ${name}` : `FAILED  ${name}: ${JSON.stringify(seen)?.slice(0, 2000)}`);
}
export function finish() {
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed ? 1 : 0;
}

const folders = [];
const children = new Set();
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

export function temporary() {
  const folder = mkdtempSync(join(tmpdir(), "quipu-explorer-"));
  folders.push(folder);
  return folder;
}

/** A vault of its own, and a user folder that no other test sees. */
export function copied(vault, name = "vault") {
  const folder = temporary();
  if (vault) cpSync(vault, join(folder, name), { recursive: true, filter: (path) => !path.includes("/.quipu") });
  return { vault: join(folder, name), state: join(folder, "state") };
}

const environment = (place) => ({ ...process.env, XDG_STATE_HOME: place.state });

/** Runs a command to its end. */
export function quipu(place, ...words) {
  // The picture of a large vault is longer than the megabyte that Node accepts by default.
  const options = { env: environment(place), encoding: "utf8", maxBuffer: 1 << 28 };
  const done = spawnSync(binary, ["--vault", place.vault, ...words], options);
  if (done.status !== 0) throw new Error(`quipu ${words.join(" ")}: ${done.error ?? done.stderr}`);
  return done.stdout.trim();
}
/** Calls a tool as another process does. */
export const agent = (place, tool, args) => JSON.parse(quipu(place, "call", tool, JSON.stringify(args)));

/** Calls a tool as an agent does: a client that starts the server and speaks to it over standard input. */
export async function connectedAgent(place, name, tool, args) {
  const child = spawn(binary, ["serve", place.vault], { env: environment(place), stdio: ["pipe", "pipe", "ignore"] });
  children.add(child);
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  let text = "";
  child.stdout.on("data", (bytes) => (text += bytes));
  const clientInfo = { name, version: "1" };
  send({ id: 1, method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo } });
  send({ method: "notifications/initialized" });
  send({ id: 2, method: "tools/call", params: { name: tool, arguments: args } });
  await until(async () => text.split("\n").some((line) => line.includes('"id":2')));
  child.stdin.end();
  await new Promise((resolve) => child.once("exit", resolve));
  children.delete(child);
}

/** Sends requests over standard input and gives the answers in their order. */
export async function talk(place, requests) {
  const child = spawn(binary, ["serve", place.vault], { env: environment(place), stdio: ["pipe", "pipe", "ignore"] });
  children.add(child);
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  let text = "";
  child.stdout.on("data", (bytes) => (text += bytes));
  const capabilities = { extensions: { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } } };
  send({ id: "first", method: "initialize", params: { protocolVersion: "2025-11-25", capabilities, clientInfo: { name: "test-host", version: "1" } } });
  send({ method: "notifications/initialized" });
  requests.forEach(([method, params], id) => send({ id, method, params }));
  const answered = () => text.split("\n").slice(0, -1).map((line) => JSON.parse(line));
  await until(async () => requests.every((_, id) => answered().some((message) => message.id === id)));
  child.stdin.end();
  await new Promise((resolve) => child.once("exit", resolve));
  children.delete(child);
  return requests.map((_, id) => answered().find((message) => message.id === id));
}

/** Starts a command and waits for the first line that matches, on either stream. */
export function started(place, words, pattern) {
  const child = spawn(binary, words, { env: environment(place), stdio: ["ignore", "pipe", "pipe"] });
  children.add(child);
  let text = "";
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no line like ${pattern} in\n${text}`)), 60_000);
    const read = (bytes) => {
      text += bytes;
      const match = pattern.exec(text);
      if (match) {
        clearTimeout(timer);
        resolve({ child, match });
      }
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.on("exit", () => reject(new Error(`it ended:\n${text}`)));
  });
}

/** A port that was free a moment ago, for a server that comes back at the same address. */
export const freePort = () =>
  new Promise((resolve, reject) => {
    const listener = createServer().once("error", reject);
    listener.listen(0, "127.0.0.1", () => {
      const { port } = listener.address();
      listener.close(() => resolve(port));
    });
  });

/** A server over HTTP. An address that is taken is an error, whose text has the words `while listening at`. */
export const serve = (place, port, ...options) =>
  started(place, ["serve", place.vault, "--http", `127.0.0.1:${port}`, ...options], /INFO listening at/);

export const open = async (place, ...options) => {
  const { child, match } = await started(place, ["open", place.vault, "--no-browser", ...options], /(http:\/\/\S+)\/#k=(\w+)/);
  return { child, base: match[1], secret: match[2] };
};

export async function stop(child) {
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  await ended;
  children.delete(child);
}

export const CHROMIUM = {
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  // Without a graphics card the picture is drawn by the processor.
  args: ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"],
};
export const launch = () => chromium.launch(CHROMIUM);

/** A page that keeps what goes wrong on it. */
export async function page(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const opened = await context.newPage();
  const faults = [];
  opened.on("console", (message) => ["error", "warning"].includes(message.type()) && faults.push(message.text()));
  opened.on("pageerror", (error) => faults.push(String(error)));
  opened.on("dialog", (dialog) => {
    faults.push(`dialog ${dialog.message()}`);
    dialog.dismiss();
  });
  await opened.addInitScript(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`));
  });
  return { context, page: opened, faults };
}

/** Waits until something is so. */
export async function until(what, timeout = 20_000) {
  const end = Date.now() + timeout;
  for (;;) {
    const seen = await what().catch(() => false);
    if (seen) return seen;
    if (Date.now() > end) return false;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** A vault of these files, by path. */
export function written(files, name = "vault") {
  const folder = temporary();
  for (const [path, text] of Object.entries(files)) {
    const file = join(folder, name, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  mkdirSync(join(folder, name), { recursive: true });
  return { vault: join(folder, name), state: join(folder, "state") };
}

/** Commits the files of a vault as they are, on a day. */
export function commit(place, date) {
  const env = { ...process.env, GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date, GIT_CONFIG_GLOBAL: "/dev/null" };
  const git = (...words) => execFileSync("git", ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main", ...words], { cwd: place.vault, env });
  git("init", "-q");
  git("add", "-A");
  git("commit", "-q", "-m", "x");
}

/** The explorer of a vault: a page that is signed in, and a way to ask the server what the page asks. */
export async function explorer(browser, place, ...options) {
  const { base, secret, child } = await open(place, ...options);
  const { context, page: tab, faults } = await page(browser, { reducedMotion: "reduce" });
  await tab.goto(`${base}/#k=${secret}`);
  await tab.waitForSelector(".frame");
  const token = await tab.evaluate(() => sessionStorage.getItem("quipu.session"));
  const headers = { authorization: `Bearer ${token}` };
  const ask = async (path, body) => (await fetch(base + path, body ? { method: "POST", headers, body: JSON.stringify(body) } : { headers })).json();
  const close = async () => {
    await context.close();
    await stop(child);
  };
  await until(async () => (await ask("/api/status")).indexed, 300_000);
  return { tab, ask, faults, close, base };
}

/** A server over a vault, and a page that came with a token. */
export async function served(browser, place, ...options) {
  const words = quipu(place, "token", "new", "--name", "explorer-test", "--scope", "read");
  const token = words.split(/\s+/).find((word) => word.length > 20) ?? words;
  const port = await freePort();
  const address = `127.0.0.1:${port}`;
  const start = async () => ({ child } = await serve(place, port, ...options));
  let child;
  await start();
  const ask = async (path) => (await fetch(`http://${address}${path}`, { headers: { authorization: `Bearer ${token}` } })).json();
  await until(async () => (await ask("/api/status")).indexed, 300_000);
  const { context, page: tab, faults } = await page(browser, { reducedMotion: "reduce" });
  const enter = async () => {
    await tab.goto(`http://${address}/`);
    await tab.fill("input[type=password]", token);
    await tab.keyboard.press("Enter");
    await tab.waitForSelector(".frame");
  };
  /** Stops the server, and gives a way to start it again. */
  const restart = async () => {
    await stop(child);
    return start;
  };
  const close = async () => {
    await context.close();
    await stop(child);
  };
  return { tab, faults, ask, enter, restart, close };
}

export async function visit(tab, address) {
  await tab.evaluate((to) => (location.hash = to), address);
  if (address.startsWith("#/graph")) await tab.waitForSelector("[data-drawn]", { timeout: 60_000 });
  return until(() => tab.evaluate(() => !document.querySelector("main .skeleton, main [aria-busy=true]")));
}

let axe = "";
/** What axe finds that keeps somebody from using the page. Evaluated by the debugger, which the page's policy does not bind. */
export async function serious(tab) {
  axe ||= readFileSync(axeSource, "utf8");
  await tab.evaluate(axe);
  const { violations } = await tab.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return violations
    .filter((found) => ["serious", "critical"].includes(found.impact))
    .map((found) => [found.id, found.nodes.map((node) => node.html.slice(0, 160)).slice(0, 3)]);
}

/** Each view by its name: loaded, with a heading, not wider than the screen, and without a serious finding of axe. */
export async function everyView(tab, vault, views, looks) {
  for (const [theme, width] of looks) {
    await tab.emulateMedia({ colorScheme: theme });
    await tab.setViewportSize({ width, height: 800 });
    for (const [view, address] of Object.entries(views)) {
      // Text that attacks looks the same in every theme and width.
      if (/attack/.test(view) && (theme === "dark" || width === 390)) continue;
      const name = `${vault}, ${view}, ${theme}, ${width}`;
      check(`${name}: it is loaded`, await visit(tab, address));
      const heading = await until(() => tab.evaluate(() => document.querySelector("main h1, main h2")?.textContent));
      check(`${name}: it is there`, heading !== false, heading);
      const wide = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      check(`${name}: nothing is cut at the right`, wide <= 0, wide);
      const found = await serious(tab);
      check(`${name}: axe finds nothing serious`, !found.length, found);
    }
  }
  await tab.emulateMedia({ colorScheme: "light" });
  await tab.setViewportSize({ width: 1280, height: 800 });
}
