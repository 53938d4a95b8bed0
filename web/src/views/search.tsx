// Search as you type, with the reason for each result.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { called } from "../api";
import { authorsOf } from "../graph/model";
import { plainText } from "../plain_text";
import { go, href, route, setParam, setParams } from "../router";
import { graph, has, loadGraph, notesVersion } from "../state";
import type { FoundPage, GraphData } from "../types";
import { author, count, folderOf } from "../ui/format";
import { Icon } from "../ui/icons";
import { selection } from "../ui/inspector";
import { Empty, Failed, FailedPart, FreshnessMark, Skeleton } from "../ui/states";
import { WhyNot } from "./why_not";

/** How long after a letter the next one waits: the first is searched for at once. */
const DEBOUNCE_MS = 80;

/** As many as the tools give. */
const SHOWN = 20;
const SHOWN_BY_TAG = 100;

export interface Results {
  pages: FoundPage[];
  total: number;
  kind: string;
  ms: number;
  query: string;
}

export function useSearch(query: string) {
  const [results, setResults] = useState<Results | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [busy, setBusy] = useState(false);
  const [attempt, setAttempt] = useState(0);
  const version = notesVersion.value;
  const typed = useRef(-Infinity);
  useEffect(() => {
    const trimmed = query.trim();
    const isFast = performance.now() - typed.current < DEBOUNCE_MS;
    typed.current = performance.now();
    if (!trimmed) {
      setResults(null);
      setError(null);
      return;
    }
    const stop = new AbortController();
    setBusy(true);
    const timer = setTimeout(async () => {
      const start = performance.now();
      try {
        const found = trimmed.startsWith("tag:") ? await byTag(trimmed.slice(4), stop.signal) : await byText(trimmed, stop.signal);
        if (stop.signal.aborted) return;
        setResults({ ...found, ms: performance.now() - start, query: trimmed });
        setError(null);
      } catch (error) {
        if (!stop.signal.aborted) setError(error as Error);
      }
      if (!stop.signal.aborted) setBusy(false);
    }, isFast ? DEBOUNCE_MS : 0);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [query, version, attempt]);
  return { results, error, busy, retry: () => setAttempt((n) => n + 1) };
}

async function byText(query: string, signal: AbortSignal): Promise<Omit<Results, "ms" | "query">> {
  const { answer } = await called<{ results: FoundPage[]; total_found: number; search_type: string }>(
    "ubp_search",
    { query, limit: SHOWN },
    signal,
  );
  return { pages: answer.results, total: answer.total_found, kind: answer.search_type };
}

async function byTag(tag: string, signal: AbortSignal): Promise<Omit<Results, "ms" | "query">> {
  const { answer } = await called<{ id: string; title: string; content?: string }[]>("search_by_tags", { tags: [tag], limit: SHOWN_BY_TAG }, signal);
  const pages = answer.map((node) => ({
    doc_id: node.id,
    filepath: node.id,
    title: node.title,
    sections: node.content ? [{ heading: null, content: node.content, score: 0 }] : [],
    score: 0,
    score_breakdown: { vector_similarity: 0, graph_proximity: 0, fulltext: 0 },
    relevance_reason: `has the tag #${tag}`,
    staleness: "untracked" as const,
  }));
  return { pages, total: pages.length, kind: "tag" };
}

/** What is searched for. The address follows what is typed, and what is typed follows the address only where something else changed it:
 * else a fast typist would get letters back that are older than the last one. */
function useQuery(): [string, (query: string) => void] {
  const { arg, params } = route.value;
  const [query, setQuery] = useState(arg);
  const written = useRef(arg);
  useEffect(() => {
    if (arg !== written.current) setQuery(arg);
    written.current = arg;
  }, [arg]);
  useEffect(() => {
    if (query.trim() === route.value.arg) return;
    written.current = query.trim();
    // Another query has other facets.
    const other = params.get("vs");
    go("search", query.trim(), { replace: true, params: new URLSearchParams(other === null ? {} : { vs: other }) });
  }, [query]);
  return [query, setQuery];
}

export function Search() {
  const [query, setQuery] = useQuery();
  const [at, setAt] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLOListElement>(null);
  const { results, error, busy, retry } = useSearch(query);
  const { params } = route.value;
  const other = params.get("vs");
  const setOther = (query: string | null) => setParams((params) => (query === null ? params.delete("vs") : params.set("vs", query)));
  useEffect(() => input.current?.focus(), []);
  useEffect(() => setAt(0), [query]);
  useEffect(() => {
    // Tags, types and authors of the results.
    if (results && !graph.value) loadGraph();
  }, [results]);
  const pages = useMemo(() => withFreshness(graph.value, results), [graph.value, results]);
  const facets = useMemo(() => facetsOf(graph.value, pages), [graph.value, pages]);
  const chosen = (name: string) => params.get(name.toLowerCase());
  const shown = pages.filter((page) => facets.every(([name, values]) => !chosen(name) || values(page).includes(chosen(name)!)));

  const focus = (n: number) => (n < 0 ? input.current : list.current?.querySelectorAll<HTMLElement>(".result > a")[n])?.focus();
  /** In the field letters are letters; the arrows go on to the results. */
  const typed = (event: KeyboardEvent) => {
    // Enter confirms a conversion of an input method.
    if (event.isComposing) return;
    if (event.key === "ArrowDown" && shown.length) focus(Math.min(shown.length - 1, at + 1));
    else if (event.key === "Enter" && shown[at]) {
      // The next key is for the note.
      input.current?.blur();
      go("note", shown[at].filepath);
    } else return;
    event.preventDefault();
  };
  /** In the results Enter opens the link that has the focus, and j and k walk as in every list. */
  const walked = (event: KeyboardEvent) => {
    const isLink = (event.target as HTMLElement).matches(".result > a");
    if (event.key === "ArrowDown") focus(Math.min(shown.length - 1, at + 1));
    else if (event.key === "ArrowUp") focus(at - 1);
    else if (event.key === " " && isLink && shown[at]) selection.value = { kind: "note", id: shown[at].filepath };
    else return;
    event.preventDefault();
  };
  useEffect(() => {
    list.current?.querySelector('[aria-current="true"]')?.scrollIntoView({ block: "nearest" });
  }, [at]);

  return (
    <div class="view search">
      <h1 class="visually-hidden">Search</h1>
      <div class="search-box">
        <Icon name="search" />
        <input
          ref={input}
          type="search"
          value={query}
          placeholder="Search by words and meaning, or tag:name"
          aria-label="Search the vault"
          onInput={(event) => setQuery(event.currentTarget.value)}
          onKeyDown={typed}
          autocomplete="off"
          spellcheck={false}
        />
        <span class="took muted">{results && !error ? `${found(results)} · ${Math.round(results.ms)} ms` : ""}</span>
        {results && (
          <button class="text-button" aria-pressed={other !== null} onClick={() => setOther(other === null ? "" : null)}>
            Compare
          </button>
        )}
      </div>
      <div class="search-body">
        <nav class="facets" aria-label="Filter results">
          {facets.map(([name, values]) => (
            <Facet
              key={name}
              title={name}
              values={counted(pages, values)}
              of={results?.pages.length ?? 0}
              chosen={chosen(name)}
              choose={(value) => {
                setAt(0);
                setParam(name.toLowerCase(), value);
              }}
            />
          ))}
        </nav>
        <div class="results" aria-live="polite" aria-busy={busy} data-query={results?.query}>
          {error ? (
            <Failed what="The search failed" error={error} retry={retry} />
          ) : !query.trim() ? (
            <NoQuery />
          ) : !results ? (
            <Skeleton kind="cards" rows={5} />
          ) : !shown.length && results.pages.length ? (
            <Empty icon="search" title="No result has these filters">
              <p>
                <button class="button" onClick={() => setParams((params) => facets.forEach(([name]) => params.delete(name.toLowerCase())))}>
                  Clear filters
                </button>
              </p>
            </Empty>
          ) : !shown.length ? (
            <>
              <Empty icon="search" title={`Nothing found for “${results.query}”`}>
                <p>Try other words; search knows no quotes or operators. {!has("search") && "Search by meaning is off, so words must occur as typed."}</p>
              </Empty>
              <WhyNot results={results} />
            </>
          ) : other !== null ? (
            <Compared results={results} other={other} setOther={setOther} />
          ) : (
            <>
              {shown.some((page) => page.score > 0) && <ScoreLegend />}
              <ol ref={list} onKeyDown={walked}>
                {shown.map((page, n) => (
                  <Result key={page.doc_id} page={page} query={results.query} current={n === at} choose={() => setAt(n)} />
                ))}
              </ol>
              {isCut(results) && (
                <p class="cut muted">
                  These are {found(results)}. The filters count these alone. More words, or other ones, bring up the rest.
                </p>
              )}
              <WhyNot results={results} />
            </>
          )}
        </div>
      </div>
    </div>
  );
}

function NoQuery() {
  return (
    <Empty icon="search" title="Find by words and meaning">
      <p>Type a question or a few words. The bar of each result shows how much words, meaning and links count.</p>
      <p class="keys-line">
        <kbd>↑</kbd> <kbd>↓</kbd> move · <kbd>Enter</kbd> open · <kbd>Space</kbd> preview
      </p>
    </Empty>
  );
}

function ScoreLegend() {
  return (
    <p class="score-legend muted">
      {(["words", "meaning", "links"] as const).map((part) => (
        <span key={part}>
          <svg width="10" height="10" aria-hidden="true">
            <rect width="10" height="10" rx="2" class={part} />
          </svg>
          {part}
        </span>
      ))}
    </p>
  );
}

/** Whether there are more results than the tools give. By tag they do not say how many. */
const isCut = ({ pages, total, kind }: Results) => total > pages.length || (kind === "tag" && pages.length === SHOWN_BY_TAG);
const found = (results: Results) =>
  !isCut(results) ? `${count(results.total)} found` : results.kind === "tag" ? `the first ${SHOWN_BY_TAG}` : `${results.pages.length} of ${count(results.total)}`;

/** Two queries side by side: what moves, and what only one of them finds. */
function Compared({ results, other, setOther }: { results: Results; other: string; setOther: (query: string) => void }) {
  const second = useSearch(other);
  const column = (pages: FoundPage[], against: FoundPage[] | undefined) => (
    <ol class="compare">
      {pages.map((page, n) => {
        const there = against?.findIndex((candidate) => candidate.filepath === page.filepath) ?? -1;
        const move = !against ? "" : there < 0 ? "only here" : there === n ? "same" : there > n ? `↑ ${there - n}` : `↓ ${n - there}`;
        return (
          <li key={page.doc_id}>
            <span class="count">{n + 1}</span>
            <a href={href("note", page.filepath)}>{page.title}</a>
            <span class={`move ${there < 0 && against ? "only" : ""}`}>{move}</span>
          </li>
        );
      })}
    </ol>
  );
  return (
    <div class="comparison">
      <section aria-label={`Results for ${results.query}`}>
        <h2>{results.query}</h2>
        {column(results.pages, second.results?.pages)}
      </section>
      <section aria-label="Results of the other query">
        <input class="field" type="search" aria-label="Other query" placeholder="Other query" value={other} onInput={(event) => setOther(event.currentTarget.value)} />
        {second.error ? <FailedPart what="The search failed" error={second.error} retry={second.retry} /> : second.results && column(second.results.pages, results.pages)}
      </section>
    </div>
  );
}

function Result({ page, query, current, choose }: { page: FoundPage; query: string; current: boolean; choose: () => void }) {
  const best = page.sections[0];
  const folder = folderOf(page.filepath);
  return (
    <li class="result" aria-current={current} onMouseEnter={choose} onFocusIn={choose}>
      <a href={href("note", page.filepath)}>
        <span class="name">{page.title}</span>
        {best?.heading && <span class="section">§ {best.heading}</span>}
      </a>
      <FreshnessMark value={page.staleness} quiet />
      {folder && <div class="path mono">{folder}</div>}
      {best && <p class="snippet">{marked(snippet(best.content, query), query)}</p>}
      {page.score > 0 && (
        <details class="why">
          <summary>
            <ScoreBar page={page} />
            <span class="muted">{Math.round(page.score * 100)}</span>
          </summary>
          <p>
            {page.relevance_reason}. Words {percent(page.score_breakdown.fulltext)}, meaning {percent(page.score_breakdown.vector_similarity)},
            links {percent(page.score_breakdown.graph_proximity)}.
          </p>
        </details>
      )}
    </li>
  );
}

const percent = (value: number) => `${Math.round(value * 100)} %`;

/** Three parts of one score. Each also has its own pattern of length, and the text beside it. */
function ScoreBar({ page }: { page: FoundPage }) {
  const { fulltext, vector_similarity, graph_proximity } = page.score_breakdown;
  const scale = 96;
  let x = 0;
  const part = (value: number, kind: string) => {
    const width = Math.max(0, value) * scale;
    const rect = <rect key={kind} x={x} width={width} height="4" class={kind} />;
    x += width;
    return rect;
  };
  const label = `Score ${percent(page.score)}: words ${percent(fulltext)}, meaning ${percent(vector_similarity)}, links ${percent(graph_proximity)}`;
  return (
    <svg class="score" width={scale} height="4" role="img" aria-label={label}>
      <rect width={scale} height="4" class="track" />
      {part(fulltext, "words")}
      {part(vector_similarity, "meaning")}
      {part(graph_proximity, "links")}
    </svg>
  );
}

const COMMON = new Set("a about an and are as at be but by can did do does for from has have how i if in into is it its me my no not of on or our so that the their then there these they this to was we were what when where which who why will with would you your".split(" "));

/** The words worth marking: all that are not in every text, unless there are no others. */
export function terms(query: string): string[] {
  const words = query.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  // One letter marks the start of half of all words; one sign of another script is a word.
  const rare = words.filter((word) => !COMMON.has(word) && !/^[\p{Script=Latin}]$/u.test(word));
  return rare.length ? rare : words;
}

function snippet(text: string, query: string): string {
  const plain = plainText(text);
  const lower = plain.toLowerCase();
  const hit = terms(query).map((word) => lower.indexOf(word)).filter((place) => place >= 0).sort((a, b) => a - b)[0] ?? 0;
  const start = Math.max(0, hit - 70);
  return (start ? "…" : "") + plain.slice(start, start + 240) + (plain.length > start + 240 ? "…" : "");
}

function marked(text: string, query: string) {
  const words = terms(query);
  if (!words.length) return text;
  // From the start of a word; scripts without spaces have none.
  const pattern = new RegExp(`((?<![\\p{Script=Latin}\\p{N}])(?:${words.join("|")}))`, "giu");
  return text.split(pattern).map((part, at) => (at % 2 ? <mark key={at}>{part}</mark> : part));
}

/** The tool that finds notes by tag does not say how fresh they are; the graph does. */
function withFreshness(data: GraphData | null, results: Results | null): FoundPage[] {
  if (!results || results.kind !== "tag" || !data) return results?.pages ?? [];
  const levels = (["fresh", "possibly_stale", "stale"] as const).flatMap((level) => data.freshness[level].map((at) => [data.notes.id[at]!.toLowerCase(), level] as const));
  const known = new Map(levels);
  return results.pages.map((page) => ({ ...page, staleness: known.get(page.filepath.toLowerCase()) ?? page.staleness }));
}

type FacetOf = [string, (page: FoundPage) => string[]];

/** The folders that all results lie in, with a slash at the end. */
function sharedFolder(pages: FoundPage[]): string {
  const [first = [], ...others] = pages.map((page) => folderOf(page.filepath).split("/"));
  const differs = first.findIndex((part, at) => others.some((other) => other[at] !== part));
  const shared = differs < 0 ? first : first.slice(0, differs);
  return shared.map((part) => `${part}/`).join("");
}

/** What results can be narrowed by: folders from where they differ on. Tags, types and authors come with the graph. */
function facetsOf(data: GraphData | null, pages: FoundPage[]): FacetOf[] {
  const shared = sharedFolder(pages);
  const below = (page: FoundPage) => folderOf(page.filepath).slice(shared.length).split("/")[0]!;
  const places = new Map(data?.notes.id.map((id, at) => [id.toLowerCase(), at]));
  const at = (page: FoundPage) => places.get(page.filepath.toLowerCase());
  const tags = (page: FoundPage) => (at(page) === undefined ? [] : data!.notes.tags[at(page)!]!.map((tag) => `#${data!.tags[tag]}`));
  const type = (page: FoundPage) => (at(page) === undefined ? [] : [data!.types[data!.notes.type[at(page)!]!]!]);
  const written = data ? authorsOf(data) : null;
  const authors = (page: FoundPage) => written?.get(at(page) ?? -1) ?? [];
  return [
    ["Folder", (page) => [below(page) || (shared ? `${shared.split("/").at(-2)} (top)` : "(top)")]],
    ["Tag", tags],
    ["Type", type],
    ["Freshness", (page) => [page.staleness]],
    ["Author", (page) => authors(page).map(author)],
  ];
}

function counted(pages: FoundPage[], of: (page: FoundPage) => string[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const value of pages.flatMap(of)) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).slice(0, 10);
}

function Facet({ title, values, of, chosen, choose }: { title: string; values: [string, number][]; of: number; chosen: string | null; choose: (value: string | null) => void }) {
  // What all results have tells nothing.
  if (!chosen && values.every(([, number]) => number === of)) return null;
  return (
    <section>
      <h2>{title}</h2>
      {values.map(([value, number]) => (
        <button key={value} class="facet" aria-pressed={chosen === value} onClick={() => choose(chosen === value ? null : value)}>
          <span>{value.replace(/_/g, " ")}</span>
          <span class="count">{number}</span>
        </button>
      ))}
    </section>
  );
}
