// One note: to read, with what leads to it. Editing, versions and diffs appear where the server offers the tools for them.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { call } from "../api";
import { drawMath, type Heading, headingId, linkFinder, render, sentenceAround } from "../markdown";
import { go, href } from "../router";
import { canWrite, has, notesVersion, status } from "../state";
import type { LinkedPage, NoteNode, Page } from "../types";
import { ago, count, nameOf, plural, when } from "../ui/format";
import { Icon } from "../ui/icons";
import { LinkedEntities } from "../ui/inspector";
import { Empty, Failed, FreshnessMark, Skeleton, useLoad } from "../ui/states";

interface ReadNote {
  page: Page;
  node: NoteNode | null;
  text: string;
}

const PART = 50_000;

async function read(path: string, stop: AbortSignal): Promise<ReadNote> {
  const [page, node] = await Promise.all([
    call<Page>("ubp_get_page", { filepath: path }, stop),
    call<NoteNode | null>("get_node", { id: path, max_chars: PART, include_entities: true }, stop),
  ]);
  let text = node?.content ?? page.content;
  let next = node?.truncated?.next_offset;
  // Long notes come in parts.
  for (let parts = 0; next && parts < 20; parts++) {
    const more = await call<NoteNode | null>("get_node", { id: path, offset: next, max_chars: PART }, stop);
    text = text.replace(/\.\.\. \[truncated\]$/, "") + (more?.content ?? "");
    next = more?.truncated?.next_offset;
  }
  return { page, node, text };
}

export function Note({ arg }: { arg: string }) {
  const [path = "", heading = ""] = arg.split("#");
  const version = notesVersion.value;
  const { data, error, retry } = useLoad((stop) => read(path, stop), [path, version], [path]);
  const [editing, setEditing] = useState(false);
  useEffect(() => setEditing(false), [path]);
  if (error && !data) {
    if (/not found|no page|no such/i.test(error.message)) {
      return (
        <Empty icon="note" title="There is no such note">
          <p class="mono">{path}</p>
          <p>It may have been renamed or deleted. {error.message}</p>
          <p>
            <a class="button" href={href("search", nameOf(path).replace(/\.md$/, ""))}>
              Search for it
            </a>
          </p>
        </Empty>
      );
    }
    return <Failed what="The note cannot be read" error={error} retry={retry} />;
  }
  if (!data) {
    return (
      <div class="view note">
        <article>
          <Skeleton kind="text" rows={12} />
        </article>
      </div>
    );
  }
  return <Shown key={path} data={data} heading={heading} editing={editing} setEditing={setEditing} />;
}

function Shown({ data, heading, editing, setEditing }: { data: ReadNote; heading: string; editing: boolean; setEditing: (on: boolean) => void }) {
  const { page, node, text } = data;
  const rendered = useMemo(() => render(text, page.filepath, page.outlinks), [text, page.outlinks.length, page.filepath]);
  const place = useRef<HTMLDivElement>(null);
  const hasOwnTitle = rendered.headings[0]?.level === 1 && rendered.headings[0].text === page.title;
  useEffect(() => {
    place.current?.replaceChildren(rendered.fragment.cloneNode(true));
    // The header shows it, above the properties.
    if (hasOwnTitle) place.current?.querySelector("h1")?.remove();
    if (place.current && rendered.hasMath) drawMath(place.current);
    if (place.current) embed(place.current, page);
    document.title = `${page.title} · Quipu`;
  }, [rendered, editing]);
  useEffect(() => {
    if (heading) document.getElementById(headingId(heading))?.scrollIntoView();
  }, [heading, rendered]);
  const outline = hasOwnTitle ? rendered.headings.slice(1) : rendered.headings;
  const parts = page.filepath.split("/");
  return (
    <div class="view note">
      {outline.length > 2 && <Outline headings={outline} />}
      <article>
        <header>
          <p class="crumbs mono">{parts.join(" / ")}</p>
          <h1>{page.title}</h1>
          <p class="meta">
            <FreshnessMark value={page.staleness} quiet />
            <span title={when(Date.parse(page.updated_at))}>changed {ago(Date.parse(page.updated_at))}</span>
            <span>{plural(page.backlinks_total ?? page.backlinks.length, "backlink")}</span>
            {page.doc_type !== "other" && <span>{page.doc_type}</span>}
            <span class="tools">
              <button class="text-button" onClick={() => go("graph", `note/${page.filepath}`)}>
                <Icon name="graph" size={15} /> Graph
              </button>
              <button class="text-button" onClick={() => navigator.clipboard?.writeText(`[[${nameOf(page.filepath).replace(/\.md$/i, "")}]]`)}>
                <Icon name="copy" size={15} /> Copy link
              </button>
              {status.value?.folder && <EditorLink folder={status.value.folder} path={page.filepath} />}
              {canWrite.value && has("update_node") && !editing && (
                <button class="text-button" onClick={() => setEditing(true)}>
                  <Icon name="edit" size={15} /> Edit
                </button>
              )}
            </span>
          </p>
          {!!page.stale_refs.length && (
            <div class="notice amber">
              <strong>Sources changed since this note did.</strong> {page.stale_refs.join(", ")}
            </div>
          )}
          {node && <Properties node={node} page={page} />}
        </header>
        {editing ? <Editor path={page.filepath} text={text} close={() => setEditing(false)} /> : <div class="prose" ref={place} />}
        <Backlinks page={page} />
        {!!node?.entities?.length && (
          <section class="after">
            <h2>In memory</h2>
            <LinkedEntities entities={node.entities} />
          </section>
        )}
        <Mentions page={page} />
        {has("node_history") && <History path={page.filepath} />}
      </article>
    </div>
  );
}

/** Opens the file in the editor that was chosen last. Only `quipu open` gives the folder, so the editor is on this machine. */
function EditorLink({ folder, path }: { folder: string; path: string }) {
  const [editor, setEditor] = useState(() => localStorage.getItem("quipu.editor") ?? "vscode");
  const file = `${folder}/${path}`;
  const address = editor === "obsidian" ? `obsidian://open?path=${encodeURIComponent(file)}` : `vscode://file${encodeURI(file).replace(/[?#]/g, encodeURIComponent)}`;
  return (
    <span class="open-in">
      <a class="text-button" href={address}>
        <Icon name="note" size={15} /> Open in
      </a>
      <select
        aria-label="Editor"
        value={editor}
        onChange={(event) => {
          setEditor(event.currentTarget.value);
          localStorage.setItem("quipu.editor", event.currentTarget.value);
        }}
      >
        <option value="vscode">VS Code</option>
        <option value="obsidian">Obsidian</option>
      </select>
    </span>
  );
}

function Outline({ headings }: { headings: Heading[] }) {
  const top = Math.min(...headings.map((heading) => heading.level));
  return (
    <nav class="outline" aria-label="Outline">
      <h2>Outline</h2>
      {headings.slice(0, 60).map((heading) => (
        <button
          key={heading.id}
          class={`level-${Math.min(2, heading.level - top)}`}
          onClick={() => {
            const target = document.getElementById(heading.id);
            target?.scrollIntoView({ behavior: "smooth", block: "start" });
            target?.focus({ preventScroll: true });
          }}
        >
          {heading.text}
        </button>
      ))}
    </nav>
  );
}

function Properties({ node, page }: { node: NoteNode; page: Page }) {
  const entries = Object.entries(node.properties).filter(([key]) => !["title", "tags"].includes(key));
  if (!entries.length && !node.tags.length) return null;
  return (
    <dl class="properties">
      {!!node.tags.length && (
        <>
          <dt>tags</dt>
          <dd class="tags">
            {node.tags.map((tag) => (
              <a key={tag} class="tag" href={href("search", `tag:${tag}`)}>
                #{tag}
              </a>
            ))}
          </dd>
        </>
      )}
      {entries.slice(0, 12).map(([key, value]) => (
        <>
          <dt key={key}>{key}</dt>
          <dd>{withLinks(shown(value), page)}</dd>
        </>
      ))}
    </dl>
  );
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return value.map(shown).join(", ");
  if (value !== null && typeof value === "object") return JSON.stringify(value);
  return String(value ?? "");
}

/** `[[links]]` of a property lead to their notes. */
function withLinks(text: string, page: Page) {
  const find = linkFinder(page.filepath, page.outlinks);
  return text.split(/\[\[([^\]]+)\]\]/).map((part, at) => {
    if (at % 2 === 0) return part;
    const [target = "", label] = part.split("|");
    const found = find(target);
    return found ? <a key={at} href={href("note", found.path)}>{label ?? target}</a> : (label ?? target);
  });
}

const BACKLINKS = 30;

function Backlinks({ page }: { page: Page }) {
  const all = unique(page.backlinks);
  const total = page.backlinks_total ?? all.length;
  const [shownCount, setShown] = useState(BACKLINKS);
  if (!all.length) {
    return (
      <section class="after">
        <h2>Backlinks</h2>
        <p class="muted">No note links to this one yet.</p>
      </section>
    );
  }
  return (
    <section class="after">
      <h2>
        Backlinks <span class="count">{count(total)}</span>
      </h2>
      <ul class="backlinks">
        {all.slice(0, shownCount).map((link) => (
          <Backlink key={link.filepath} link={link} to={page.filepath} />
        ))}
      </ul>
      {all.length > shownCount && (
        <button class="button quiet" onClick={() => setShown((n) => n + BACKLINKS)}>
          Show more
        </button>
      )}
    </section>
  );
}

function unique(links: LinkedPage[]): LinkedPage[] {
  const seen = new Set<string>();
  return links.filter((link) => !seen.has(link.filepath) && seen.add(link.filepath));
}

/** A linking note with the sentence around its link, read when it comes into sight. */
function Backlink({ link, to }: { link: LinkedPage; to: string }) {
  const item = useRef<HTMLLIElement>(null);
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && setSeen(true), { rootMargin: "200px" });
    if (item.current) observer.observe(item.current);
    return () => observer.disconnect();
  }, []);
  const { data } = useLoad(
    async (stop) => {
      if (!seen) return null;
      const page = await call<Page>("ubp_get_page", { filepath: link.filepath }, stop);
      return sentenceAround(page.content, page.filepath, page.outlinks, to);
    },
    [seen, link.filepath, to],
  );
  return (
    <li ref={item}>
      <a href={href("note", link.filepath)}>{link.title}</a>
      {link.link_type !== "references" && <span class="kind">{link.link_type.replace(/_/g, " ")}</span>}
      <p>
        {data ? (
          <>
            {data[0]}
            <mark>{data[1]}</mark>
            {data[2]}
          </>
        ) : (
          " "
        )}
      </p>
    </li>
  );
}

interface Fulltext {
  results: { filepath: string; title: string; heading?: string | null; snippet: string }[];
}

function Mentions({ page }: { page: Page }) {
  const [open, setOpen] = useState(false);
  const { data } = useLoad(
    async (stop) => {
      if (!open) return null;
      const found = await call<Fulltext>("ubp_fulltext_search", { query: page.title.slice(0, 200), limit: 50 }, stop);
      const linked = new Set([...page.backlinks, ...page.outlinks].map((link) => link.filepath).concat(page.filepath));
      const title = page.title.toLowerCase();
      return found.results.filter((hit) => !linked.has(hit.filepath) && strip(hit.snippet).toLowerCase().includes(title));
    },
    [open, page.filepath],
  );
  return (
    <details class="after mentions" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <h2>Unlinked mentions</h2>
      </summary>
      {!open ? null : !data ? (
        <Skeleton rows={3} />
      ) : data.length ? (
        <ul class="backlinks">
          {data.map((hit, at) => (
            <li key={at}>
              <a href={href("note", hit.filepath)}>{hit.title}</a>
              <p>{strip(hit.snippet)}</p>
            </li>
          ))}
        </ul>
      ) : (
        <p class="muted">No other note has this title in its text.</p>
      )}
    </details>
  );
}

const strip = (snippet: string) => snippet.replace(/<\/?mark>/g, "");

/** Fills `![[note]]` with the note it names, one level deep. */
async function embed(root: HTMLElement, page: Page) {
  const places = [...root.querySelectorAll<HTMLAnchorElement>("a[data-embed][data-note]")].slice(0, 12);
  for (const place of places) {
    const path = place.dataset.note!;
    if (path === page.filepath) continue;
    try {
      const inner = await call<Page>("ubp_get_page", { filepath: path });
      if (!place.isConnected) return;
      const wanted = place.dataset.embed?.split("#")[1]?.replace(/^\^/, "").toLowerCase();
      const section = wanted && inner.sections.find((part) => part.heading?.toLowerCase() === wanted);
      const { fragment } = render(section ? section.content : inner.content, inner.filepath, inner.outlinks);
      const frame = document.createElement("div");
      frame.className = "embed";
      const title = document.createElement("a");
      title.className = "embed-title";
      title.href = place.href;
      title.textContent = inner.title;
      frame.append(title, fragment);
      const paragraph = place.closest("p");
      if (paragraph && paragraph.textContent?.trim() === place.textContent?.trim()) paragraph.replaceWith(frame);
      else place.replaceWith(frame);
    } catch {
      // The link stays, and leads to the note.
    }
  }
}

function Editor({ path, text, close }: { path: string; text: string; close: () => void }) {
  const [draft, setDraft] = useState(text);
  const [failed, setFailed] = useState<Error | null>(null);
  const [busy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    try {
      await call("update_node", { id: path, content: draft });
      close();
    } catch (error) {
      setFailed(error as Error);
    }
    setBusy(false);
  };
  return (
    <div class="editor">
      {failed && (
        <div class="notice stale" role="alert">
          <strong>Not saved.</strong> {failed.message} The text below is still yours; copy it before you reload.
        </div>
      )}
      <textarea
        aria-label="Text of the note"
        value={draft}
        onInput={(event) => setDraft(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") close();
          if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) save();
        }}
        spellcheck
      />
      <div class="actions">
        <button class="button primary" onClick={save} disabled={busy || draft === text}>
          Save
        </button>
        <button class="button quiet" onClick={close}>
          Cancel
        </button>
        <span class="muted small">Ctrl Enter saves, Esc cancels. Saving is refused if the file changed meanwhile.</span>
      </div>
    </div>
  );
}

interface Versions {
  versions: { version: string; at: string; by: string; action: string; chars: number }[];
}

function History({ path }: { path: string }) {
  const [open, setOpen] = useState(false);
  const [chosen, setChosen] = useState<string | null>(null);
  const version = notesVersion.value;
  const { data, error } = useLoad((stop) => (open ? call<Versions>("node_history", { id: path }, stop) : Promise.resolve(null)), [open, path, version]);
  const diff = useLoad(
    (stop) => (chosen && has("diff_node") ? call<{ diff: string }>("diff_node", { id: path, from: chosen }, stop) : Promise.resolve(null)),
    [chosen, path],
  );
  return (
    <details class="after" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <h2>History</h2>
      </summary>
      {error && <p class="muted">{error.message}</p>}
      {data && (
        <ol class="timeline">
          {data.versions.map((entry, at) => (
            <li key={entry.version}>
              <button aria-expanded={chosen === entry.version} onClick={() => setChosen(chosen === entry.version ? null : entry.version)}>
                <span>{ago(Date.parse(entry.at))}</span> <span class="muted">{entry.by || "a person"}</span> {entry.action}
                {at === 0 && <span class="kind">current</span>}
              </button>
              {chosen === entry.version && diff.data && <Diff text={diff.data.diff} />}
              {chosen === entry.version && at > 0 && canWrite.value && has("revert_node") && (
                <button class="button quiet" onClick={() => call("revert_node", { id: path, version: entry.version })}>
                  Revert to this version
                </button>
              )}
            </li>
          ))}
        </ol>
      )}
    </details>
  );
}

export function Diff({ text }: { text: string }) {
  return (
    <pre class="diff" tabIndex={0}>
      {text.split("\n").map((line, at) => (
        <span key={at} class={line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : line.startsWith("@") ? "hunk" : ""}>
          {line}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}
