// Builds web/dist from web/src: `npm ci && npm run build`. The output is committed and embedded in the binary, so that building Quipu
// needs no Node. It is the same on every machine: names carry a hash of the content, and nothing depends on time or paths.
import { build } from "esbuild";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";

const out = process.argv[2] ?? "dist";
await rm(out, { recursive: true, force: true });
await mkdir(`${out}/assets`, { recursive: true });

const result = await build({
  entryPoints: { app: "src/main.tsx", style: "src/styles/main.css" },
  bundle: true,
  splitting: true,
  format: "esm",
  target: ["chrome111", "firefox114", "safari16.4"],
  minify: true,
  legalComments: "none",
  charset: "utf8",
  jsx: "automatic",
  jsxImportSource: "preact",
  define: { "process.env.NODE_ENV": '"production"' },
  entryNames: "assets/[name]-[hash]",
  chunkNames: "assets/[name]-[hash]",
  outdir: out,
  metafile: true,
  logLevel: "warning",
});

const entries = Object.entries(result.metafile.outputs);
const named = (source) => entries.find(([, file]) => file.entryPoint === source)[0].slice(out.length + 1);
const page = (await readFile("src/index.html", "utf8"))
  .replace("%STYLE%", `/${named("src/styles/main.css")}`)
  .replace("%SCRIPT%", `/${named("src/main.tsx")}`);
await writeFile(`${out}/index.html`, page);
await writeFile(`${out}/icon.svg`, await readFile("src/icon.svg"));

// The view inside a chat: one file, since its host loads nothing else.
const chat = async (source, options) => {
  const { outputFiles } = await build({ entryPoints: [source], bundle: true, minify: true, write: false, charset: "utf8", legalComments: "none", target: "es2022", ...options });
  return outputFiles[0].text.trim().replaceAll("</script", "<\\/script");
};
const style = await chat("src/chat/view.css", {});
const script = await chat("src/chat/view.ts", { format: "iife" });
const view = (await readFile("src/chat/view.html", "utf8")).replace("%STYLE%", () => style).replace("%SCRIPT%", () => script);
await writeFile(`${out}/chat.html`, view);
const CHAT_LIMIT = 150_000;
if (Buffer.byteLength(view) > CHAT_LIMIT) {
  console.error(`the view inside a chat is over ${CHAT_LIMIT} bytes`);
  process.exit(1);
}

// What a first visit loads: the page, the style, and the script with what it imports at once.
const first = new Set(["index.html", named("src/styles/main.css")]);
const visit = (path) => {
  const name = path.slice(out.length + 1);
  if (first.has(name)) return;
  first.add(name);
  for (const part of result.metafile.outputs[path].imports) {
    if (part.kind === "import-statement") visit(part.path);
  }
};
visit(`${out}/${named("src/main.tsx")}`);
const rows = [];
for (const path of ["index.html", "icon.svg", ...entries.map(([path]) => path.slice(out.length + 1))].sort()) {
  const bytes = await readFile(`${out}/${path}`);
  const gzip = gzipSync(bytes, { level: 9 });
  await mkdir(`${out}/gzip/assets`, { recursive: true });
  await writeFile(`${out}/gzip/${path}.gz`, gzip);
  const etag = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
  rows.push({ path, etag, bytes: bytes.length, compressed: gzip.length, first: first.has(path) });
}

// The table that the server embeds.
const KINDS = { html: "text/html; charset=utf-8", js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8", svg: "image/svg+xml" };
const asset = ({ path, etag }) => `    Asset {
        path: "/${path === "index.html" ? "" : path}",
        kind: "${KINDS[path.split(".").pop()]}",
        etag: "\\"${etag}\\"",
        bytes: include_bytes!("${path}"),
        gzip: include_bytes!("gzip/${path}.gz"),
    },
`;
const table = `// Written by web/build.mjs.
static ASSETS: [Asset; ${rows.length}] = [
${rows.map(asset).join("")}];
`;
await writeFile(`${out}/table.rs`, table);
const total = rows.filter((row) => row.first).reduce((sum, row) => sum + row.compressed, 0);
for (const row of rows) console.log(`${row.first ? "*" : " "} ${row.path} ${row.bytes} (${row.compressed} compressed)`);
console.log(`first load ${total} bytes compressed`);
const LIMIT = 250_000;
if (total > LIMIT) {
  console.error(`the first load is over ${LIMIT} bytes`);
  process.exit(1);
}
