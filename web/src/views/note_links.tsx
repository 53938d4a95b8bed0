// What leads to a note: links with the sentence around each, and texts that name it without a link.
import { useState } from "preact/hooks";
import { call } from "../api";
import { plainText } from "../plain_text";
import { href } from "../router";
import type { LinkedPage, Page } from "../types";
import { count } from "../ui/format";
import { SentenceFrom } from "../ui/sentences";
import { FailedPart, Skeleton, useLoad } from "../ui/states";

const BACKLINKS = 30;
/** Places with the words of the title that are looked at: as many as the tool gives. */
const PLACES = 50;

export function Backlinks({ page }: { page: Page }) {
  const all = unique(page.backlinks);
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
        Backlinks <span class="count">{count(all.length)}</span>
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

/** A linking note with the sentence around its link. */
function Backlink({ link, to }: { link: LinkedPage; to: string }) {
  return (
    <li>
      <a href={href("note", link.filepath)}>{link.title}</a>
      {link.link_type !== "references" && <span class="kind">{link.link_type.replace(/_/g, " ")}</span>}
      <SentenceFrom from={link.filepath} to={to} />
    </li>
  );
}

interface Fulltext {
  results: { filepath: string; title: string; heading?: string | null; snippet: string }[];
}

export function Mentions({ page }: { page: Page }) {
  const [open, setOpen] = useState(false);
  const { data, error, retry } = useLoad(
    async (stop) => {
      if (!open) return null;
      const found = await call<Fulltext>("ubp_fulltext_search", { query: page.title.slice(0, 200), limit: PLACES }, stop);
      const linking = new Set(page.backlinks.map((link) => link.filepath));
      const hits = found.results.filter((hit) => !linking.has(hit.filepath) && hit.filepath !== page.filepath && mentionAt(strip(hit.snippet), page.title) >= 0);
      return { hits, isCut: found.results.length === PLACES };
    },
    [open, page.filepath, page.backlinks.length],
  );
  return (
    <details class="after mentions" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <h2>Unlinked mentions</h2>
      </summary>
      {!open ? null : error ? (
        <FailedPart what="The text cannot be searched" error={error} retry={retry} />
      ) : !data ? (
        <Skeleton rows={3} />
      ) : data.hits.length ? (
        <ul class="backlinks">
          {data.hits.map((hit, at) => (
            <li key={at}>
              <a href={href("note", hit.filepath)}>{hit.title}</a>
              <p>{withMark(strip(hit.snippet), page.title)}</p>
            </li>
          ))}
        </ul>
      ) : (
        <p class="muted">{data.isCut ? "None found." : "No other note has this title in its text."}</p>
      )}
      {data?.isCut && <p class="muted small">Only the {PLACES} best matches of the words of the title were looked at.</p>}
    </details>
  );
}

const strip = (snippet: string) => plainText(snippet.replace(/<\/?mark>/g, ""));

/** Where a text has a title as words of their own; scripts without spaces have none. */
function mentionAt(text: string, title: string): number {
  const isLetter = (letter: string | undefined) => /[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{N}]/u.test(letter ?? "");
  const [low, want] = [text.toLowerCase(), title.toLowerCase()];
  for (let at = low.indexOf(want); at >= 0; at = low.indexOf(want, at + 1)) {
    const isInside = (isLetter(low[at - 1]) && isLetter(want[0])) || (isLetter(low[at + want.length]) && isLetter(want.at(-1)));
    if (!isInside) return at;
  }
  return -1;
}

function withMark(text: string, title: string) {
  const at = mentionAt(text, title);
  if (at < 0) return text;
  return (
    <>
      {text.slice(0, at)}
      <mark>{text.slice(at, at + title.length)}</mark>
      {text.slice(at + title.length)}
    </>
  );
}
