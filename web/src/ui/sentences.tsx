// The sentence around a link, in the text of the note that has it.
import { useEffect, useRef, useState } from "preact/hooks";
import { sentenceAround } from "../markdown";
import { readPage, wholeText } from "../page";
import type { Page } from "../types";
import { useLoad } from "./states";

type Sentence = [string, string, string] | "property";

export function SentenceText({ sentence }: { sentence: Sentence }) {
  if (sentence === "property") return <span class="muted">In its properties</span>;
  return (
    <>
      {sentence[0]}
      <mark>{sentence[1]}</mark>
      {sentence[2]}
    </>
  );
}

/** The sentence in which a page links to another; null where its text has no such link. */
export const sentenceIn = (page: Page, to: string) => sentenceAround(wholeText(page), page.filepath, page.outlinks, to);

/** The sentence in which one note links to another; read when it comes into sight. */
export function SentenceFrom({ from, to }: { from: string; to: string }) {
  const place = useRef<HTMLParagraphElement>(null);
  const seen = useSeen(place);
  const { data, error } = useLoad(
    async (stop): Promise<Sentence | null> => (seen ? (sentenceIn(await readPage(from, stop), to) ?? "property") : null),
    [seen, from, to],
  );
  return (
    <p ref={place} class="sentence">
      {data ? <SentenceText sentence={data} /> : error ? <span class="muted">Its text cannot be read: {error.message}</span> : " "}
    </p>
  );
}

/** Whether an element has come into sight, or near it. */
export function useSeen(place: { current: Element | null }): boolean {
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && setSeen(true), { rootMargin: "200px" });
    if (place.current) observer.observe(place.current);
    return () => observer.disconnect();
  }, []);
  return seen;
}
