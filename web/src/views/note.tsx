// One note: to read, with what leads to it. Editing, versions and diffs appear where the server offers the tools for them.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { call } from "../api";
import { type Heading, headingId, linkFinder, render } from "../markdown";
import { drawLater } from "../note_media";
import { readPage } from "../page";
import { go, href } from "../router";
import { canWrite, has, notesVersion, status } from "../state";
import type { NoteNode, Page } from "../types";
import { ago, nameOf, plural, when } from "../ui/format";
import { useFirst } from "../ui/first";
import { chooseEditor, chosenEditor, EDITORS, editorAddress } from "../ui/editors";
import { Icon } from "../ui/icons";
import { LinkedEntities } from "../ui/inspector";
import { Empty, Failed, FreshnessMark, Skeleton, useLoad } from "../ui/states";
import { draftOf, Editor } from "./note_editor";
import { History } from "./note_history";
import { Backlinks, Mentions } from "./note_links";

export interface ReadNote {
  page: Page;
  node: NoteNode | null;
  text: string;
  /** Whether `text` is all of it. */
  whole: boolean;
}

const PART = 50_000;

export async function read(path: string, stop?: AbortSignal): Promise<ReadNote> {
  const [page, node] = await Promise.all([
    readPage(path, stop),
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
  return { page, node, text, whole: !!node && !next };
}

export function Note({ arg }: { arg: string }) {
  const [path = "", heading = ""] = arg.split("#");
  const version = notesVersion.value;
  const { data, error, retry } = useLoad((stop) => read(path, stop), [path, version], [path]);
  const [editing, setEditing] = useState(() => !!draftOf(path));
  useEffect(() => setEditing(!!draftOf(path)), [path]);
  if (error && !data) {
    if (/not found|no page|no such/i.test(error.message)) {
      return (
        <Empty icon="note" title="There is no such note">
          <p class="mono">{path}</p>
          <p>It may have been renamed or deleted.</p>
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
  const rendered = useMemo(() => render(text, page.filepath, page.outlinks), [text, page.outlinks.map((link) => link.filepath).join("\n"), page.filepath]);
  const place = useRef<HTMLDivElement>(null);
  const hasOwnTitle = rendered.headings[0]?.level === 1 && rendered.headings[0].text === page.title;
  useEffect(() => {
    place.current?.replaceChildren(rendered.fragment.cloneNode(true));
    // The header shows it, above the properties.
    if (hasOwnTitle) place.current?.querySelector("h1")?.remove();
    document.title = `${page.title} · Quipu`;
    if (!place.current) return;
    embed(place.current, page);
    return drawLater(place.current, page.filepath);
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
            <span>{plural(new Set(page.backlinks.map((link) => link.filepath)).size, "backlink")}</span>
            {page.doc_type !== "other" && <span>{page.doc_type}</span>}
            <span class="tools">
              <button class="text-button" onClick={() => go("graph", `note/${page.filepath}`)}>
                <Icon name="graph" size={15} /> Graph
              </button>
              <button class="text-button" onClick={() => navigator.clipboard?.writeText(`[[${nameOf(page.filepath).replace(/\.md$/i, "")}]]`)}>
                <Icon name="copy" size={15} /> Copy link
              </button>
              {status.value?.folder && <EditorLink folder={status.value.folder} path={page.filepath} />}
              {canWrite.value && has("update_node") && data.whole && !editing && (
                <button class="text-button" onClick={() => setEditing(true)}>
                  <Icon name="edit" size={15} /> Edit
                </button>
              )}
            </span>
          </p>
          {!!page.stale_refs.length && (
            <div class="notice amber">
              <strong>Sources changed after this note</strong>
              {page.stale_since && <span title={when(Date.parse(page.stale_since))}>, the first {ago(Date.parse(page.stale_since))}</span>}:{" "}
              {page.stale_refs.join(", ")}
            </div>
          )}
          {node && <Properties node={node} page={page} />}
        </header>
        {editing && canWrite.value && data.whole ? <Editor now={data} close={() => setEditing(false)} /> : <div class="prose" ref={place} onClick={toFootnote} />}
        <Backlinks page={page} />
        {!!node?.entities?.length && (
          <section class="after">
            <h2>In memory</h2>
            <LinkedEntities entities={node.entities} />
          </section>
        )}
        <Mentions page={page} />
        {has("node_history") && <History path={page.filepath} version={node?.version} />}
      </article>
    </div>
  );
}

/** From the mark of a footnote to its text. */
function toFootnote(event: MouseEvent) {
  const number = (event.target as HTMLElement).closest<HTMLElement>("button.footnote")?.dataset.footnote;
  const text = number && (event.currentTarget as HTMLElement).querySelector<HTMLElement>(`[data-footnote-text="${number}"]`);
  if (!text) return;
  text.scrollIntoView({ block: "center" });
  text.focus({ preventScroll: true });
}

/** Opens the file in the editor that was chosen last. Only `quipu open` gives the folder, so the editor is on this machine. */
function EditorLink({ folder, path }: { folder: string; path: string }) {
  const [editor, setEditor] = useState(chosenEditor);
  return (
    <span class="open-in">
      <a class="text-button" href={editorAddress(`${folder}/${path}`, editor)}>
        <Icon name="note" size={15} /> Open in
      </a>
      <select
        aria-label="Editor"
        value={editor}
        onChange={(event) => {
          const chosen = event.currentTarget.value as typeof editor;
          setEditor(chosen);
          chooseEditor(chosen);
        }}
      >
        {Object.entries(EDITORS).map(([key, name]) => (
          <option key={key} value={key}>
            {name}
          </option>
        ))}
      </select>
    </span>
  );
}

function Outline({ headings }: { headings: Heading[] }) {
  const top = Math.min(...headings.map((heading) => heading.level));
  const [first, more] = useFirst(headings, 60);
  return (
    <nav class="outline" aria-label="Outline">
      <h2>Outline</h2>
      {first.map((heading) => (
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
      {more}
    </nav>
  );
}

function Properties({ node, page }: { node: NoteNode; page: Page }) {
  const entries = Object.entries(node.properties).filter(([key]) => !["title", "tags"].includes(key));
  const [first, more] = useFirst(entries, 12);
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
      {first.map(([key, value]) => (
        <>
          <dt key={key}>{key}</dt>
          <dd>{withLinks(shown(value), page)}</dd>
        </>
      ))}
      {more && <dd>{more}</dd>}
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
  return text.split(/\[\[((?:[^[\]]|\[(?!\[)){1,1000})\]\]/).map((part, at) => {
    if (at % 2 === 0) return part;
    const [target = "", label] = part.split("|");
    const found = find(target);
    return found ? <a key={at} href={href("note", found.path)}>{label ?? target}</a> : (label ?? target);
  });
}

/** Notes that are shown inside another. */
const EMBEDS = 12;

/** Fills `![[note]]` with the note it names, one level deep. */
async function embed(root: HTMLElement, page: Page) {
  const places = [...root.querySelectorAll<HTMLAnchorElement>("a[data-embed][data-note]")];
  for (const place of places.slice(EMBEDS)) place.title = `Only the first ${EMBEDS} notes are shown inside this one`;
  for (const place of places.slice(0, EMBEDS)) {
    const path = place.dataset.note!;
    if (path === page.filepath) continue;
    try {
      const inner = await readPage(path);
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
      drawLater(frame, inner.filepath);
      const paragraph = place.closest("p");
      if (paragraph && paragraph.textContent?.trim() === place.textContent?.trim()) paragraph.replaceWith(frame);
      else place.replaceWith(frame);
    } catch {
      // The link stays, and leads to the note.
    }
  }
}
