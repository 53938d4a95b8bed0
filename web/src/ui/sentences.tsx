// The sentence around a link, in the text of the note that has it.
import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "../api";
import { sentenceAround } from "../markdown";
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

/** The sentence in which one note links to another; read when it comes into sight. */
export function SentenceFrom({ from, to }: { from: string; to: string }) {
  const place = useRef<HTMLParagraphElement>(null);
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && setSeen(true), { rootMargin: "200px" });
    if (place.current) observer.observe(place.current);
    return () => observer.disconnect();
  }, []);
  const { data } = useLoad(
    async (stop): Promise<Sentence | null> => {
      if (!seen) return null;
      const page = await call<Page>("ubp_get_page", { filepath: from }, stop);
      return sentenceAround(page.content, page.filepath, page.outlinks, to) ?? "property";
    },
    [seen, from, to],
  );
  return (
    <p ref={place} class="sentence">
      {data ? <SentenceText sentence={data} /> : " "}
    </p>
  );
}
