// The first of many, with a button that says how many are left out.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { count } from "./format";

export function useFirst<T>(all: T[], first: number): [T[], ComponentChildren] {
  const [isWhole, setWhole] = useState(false);
  const left = all.length - first;
  if (isWhole || left <= 0) return [all, null];
  const more = (
    <button class="text-button more" onClick={() => setWhole(true)}>
      Show {count(left)} more
    </button>
  );
  return [all.slice(0, first), more];
}

/** The same for what a tool lists up to a limit: whether there is more is known only where it gives as many as were asked for. */
export function useLimit(step: number): [number, (listed: number) => ComponentChildren] {
  const [limit, setLimit] = useState(step);
  const more = (listed: number) =>
    listed >= limit && limit < MOST ? (
      <button class="text-button more" onClick={() => setLimit(Math.min(MOST, limit + step))}>
        Show more than {count(limit)}
      </button>
    ) : listed >= MOST ? (
      <p class="muted small">These are the newest {count(MOST)}.</p>
    ) : null;
  return [limit, more];
}

/** As many as the tools give. */
const MOST = 1_000;
