// The four states that every view has: loading, empty, failed, and content that stays while the server is away.
import { useEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { status } from "../state";
import { plural } from "./format";
import { Icon, type IconName } from "./icons";

export interface Loaded<T> {
  data: T | null;
  error: Error | null;
  loading: boolean;
  retry: () => void;
}

/** Loads when `keys` change. What was there stays until the new answer is: numbers and lists do not jump. */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, keys: unknown[], resetOn: unknown[] = []): Loaded<T> {
  const [state, set] = useState<{ data: T | null; error: Error | null; loading: boolean }>({ data: null, error: null, loading: true });
  const [attempt, setAttempt] = useState(0);
  const reset = JSON.stringify(resetOn);
  const lastReset = useRef(reset);
  useEffect(() => {
    const stop = new AbortController();
    const isOther = lastReset.current !== reset;
    lastReset.current = reset;
    set((before) => ({ data: isOther ? null : before.data, error: null, loading: true }));
    load(stop.signal).then(
      (data) => !stop.signal.aborted && set({ data, error: null, loading: false }),
      (error) => !stop.signal.aborted && set((before) => ({ data: before.data, error, loading: false })),
    );
    return () => stop.abort();
  }, [...keys, attempt, reset]);
  return { ...state, retry: () => setAttempt((n) => n + 1) };
}

export function Skeleton({ rows = 6, kind = "rows" }: { rows?: number; kind?: "rows" | "text" | "cards" }) {
  return (
    <div class={`skeleton ${kind}`} aria-busy="true" aria-label="Loading" role="status">
      {Array.from({ length: rows }, (_, n) => (
        <span key={n} />
      ))}
    </div>
  );
}

export const layingOut = () => `Laying out ${status.value ? plural(status.value.notes, "note") : "the notes"}…`;

/** The graph before its first picture: the controls and the legend are where they will be. */
export function GraphSkeleton() {
  return (
    <div class="view graph" aria-busy="true">
      <h1 class="visually-hidden">Graph</h1>
      <div class="graph-top skeleton" aria-hidden="true">
        <span />
        <span />
      </div>
      <div class="legend skeleton" aria-hidden="true">
        {Array.from({ length: 8 }, (_, n) => (
          <span key={n} />
        ))}
      </div>
      <p class="graph-hint skeleton" role="status">
        {layingOut()}
      </p>
    </div>
  );
}

export function Empty({ icon, title, children }: { icon: IconName; title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <Icon name={icon} size={28} />
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Failed({ what, error, retry }: { what: string; error: Error; retry?: () => void }) {
  const text = `${what}: ${error.message}`;
  return (
    <div class="empty failed" role="alert">
      <Icon name="warning" size={28} />
      <h2>{what}</h2>
      <p>{error.message}</p>
      <div class="actions">
        {retry && (
          <button class="button" onClick={retry}>
            Retry
          </button>
        )}
        <button class="button quiet" onClick={() => navigator.clipboard?.writeText(text)}>
          Copy details
        </button>
      </div>
    </div>
  );
}

/** For a part of a view: the rest of it stays. */
export function FailedPart({ what, error, retry }: { what: string; error: Error; retry: () => void }) {
  return (
    <p class="notice stale failed-part" role="alert">
      {what}: {error.message}{" "}
      <button class="text-button" onClick={retry}>
        Retry
      </button>
    </p>
  );
}

const FRESHNESS = {
  fresh: ["fresh", "Fresh"],
  possibly_stale: ["amber", "Possibly stale"],
  stale: ["stale", "Stale"],
  untracked: ["none", "Untracked"],
} as const;

export function FreshnessMark({ value, quiet }: { value: keyof typeof FRESHNESS; quiet?: boolean }) {
  const [kind, text] = FRESHNESS[value] ?? FRESHNESS.untracked;
  if (quiet && (value === "untracked" || value === "fresh")) return null;
  return <span class={`mark ${kind}`}>{text}</span>;
}

/** A row of bars, newest at the right. */
export function Spark({ values, label, most = Math.max(1, ...values) }: { values: number[]; label: string; most?: number }) {
  return (
    <svg class="spark" viewBox={`0 0 ${values.length * 3} 28`} preserveAspectRatio="none" role="img" aria-label={label}>
      {values.map((value, at) => {
        const height = value ? Math.max(2, (value / most) * 26) : 1;
        return <rect key={at} x={at * 3} y={28 - height} width="2" height={height} class={value ? "on" : ""} />;
      })}
    </svg>
  );
}
