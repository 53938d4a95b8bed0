// What all views share: the session, the server's state, the graph, and the live trail. Kept up to date by one stream of events.
import { computed, effect, type Signal, signal } from "@preact/signals";
import * as api from "./api";
import { kept } from "./place";
import type { GraphData, Status, Trace } from "./types";

export type Connection = "connecting" | "live" | "lost";

export const signedIn = signal(!!api.token());
/** What ended, where this tab was signed in before; or the link that could not be used. */
export const ended = signal<"session" | "token" | "link" | null>(null);
export const connection = signal<Connection>("connecting");
export const status = signal<Status | null>(null);
export const graph = signal<GraphData | null>(null);
export const graphError = signal<Error | null>(null);
export const trail = signal<Trace[]>([]);
/** Grows with every change of notes or memory; views that show them read again. */
export const notesVersion = signal(0);
export const memoryVersion = signal(0);
/** Why the state of the server could not be read, if the last attempt failed. */
export const statusError = signal<Error | null>(null);
/** How many lines of the trail came so far. */
export const heard = signal(0);
/** Grows when the server sends the trail from its beginning: texts of it may have been redacted, so views drop their copies. */
export const trailRestarts = signal(0);

const MAX_TRAIL = 500;

export const has = (tool: string) => status.value?.tools.includes(tool) ?? false;
export const canWrite = computed(() => (status.value ? status.value.scope !== "read" : false));

/* Theme: the system's unless chosen. */
export type Theme = "system" | "light" | "dark";
export const theme = signal<Theme>((localStorage.getItem("quipu.theme") as Theme) || "system");
const systemDark = matchMedia("(prefers-color-scheme: dark)");
const systemTheme = signal(systemDark.matches);
systemDark.addEventListener("change", () => {
  systemTheme.value = systemDark.matches;
});
export const isDark = computed(() => (theme.value === "system" ? systemTheme.value : theme.value === "dark"));
effect(() => {
  document.documentElement.dataset.theme = isDark.value ? "dark" : "light";
  localStorage.setItem("quipu.theme", theme.value);
});
export function toggleTheme() {
  theme.value = isDark.value ? "light" : "dark";
}

/* The last visit, for "changed since". It moves when a new tab opens, not with every reload. */
const VISIT = kept("visit");
export const lastVisit = (() => {
  const known = sessionStorage.getItem(VISIT);
  if (known) return Number(known);
  const before = Number(localStorage.getItem(VISIT) ?? 0);
  sessionStorage.setItem(VISIT, String(before));
  return before;
})();
localStorage.setItem(VISIT, String(Date.now()));

let graphRequest: Promise<void> | null = null;
/** Loads the graph once; again after changes. */
export function loadGraph(): Promise<void> {
  graphRequest ??= api
    .get<GraphData>("/api/graph")
    .then((data) => {
      if (data.version !== graph.value?.version) graph.value = data;
      graphError.value = null;
    })
    .catch((error) => {
      graphError.value = error;
    })
    .finally(() => {
      graphRequest = null;
    });
  return graphRequest;
}

export async function loadStatus() {
  try {
    status.value = await api.get<Status>("/api/status");
    statusError.value = null;
  } catch (error) {
    statusError.value = error as Error;
  }
}

/** Counts change while the vault is read and embedded, and clients come and go. */
const BUSY_MS = 2_000;
const IDLE_MS = 20_000;
async function pollStatus() {
  for (;;) {
    const known = status.value;
    const isBusy = !known || !known.indexed || known.embedded < known.to_embed;
    await new Promise((resolve) => setTimeout(resolve, isBusy ? BUSY_MS : IDLE_MS));
    if (connection.value !== "live" || document.hidden) continue;
    await loadStatus();
    if (known && !known.indexed && status.value?.indexed) {
      notesVersion.value++;
      memoryVersion.value++;
      reloadGraph();
    }
  }
}
pollStatus();

/** Reads the graph again, where it was read before: a request that is on its way may be older than the change. */
async function reloadGraph() {
  await graphRequest;
  if (graph.value) await loadGraph();
}

/** The graph is read again when changes pause, and while they do not, this long after the first of them. */
const GRAPH_PAUSE_MS = 400;
const GRAPH_WAIT_MS = 2_000;
/** A draft is replaced when the server has laid the graph out. */
async function laidOut() {
  await graphRequest;
  if (graph.value && !graph.value.settled) await loadGraph();
}

let graphTimer = 0;
let firstChange: number | null = null;
function graphChanged() {
  const now = performance.now();
  firstChange ??= now;
  clearTimeout(graphTimer);
  graphTimer = window.setTimeout(
    () => {
      firstChange = null;
      loadStatus();
      reloadGraph();
    },
    Math.max(0, Math.min(GRAPH_PAUSE_MS, firstChange + GRAPH_WAIT_MS - now)),
  );
}

function take({ event, data }: api.ServerEvent) {
  if (event === "open") {
    const wasLost = connection.value === "lost";
    connection.value = "live";
    loadStatus();
    if (wasLost) {
      notesVersion.value++;
      memoryVersion.value++;
      graphChanged();
    }
  } else if (event === "history") {
    // What the server still knows from before, all at once; it repeats when the stream is opened again.
    const history = (data as Trace[]).reverse();
    const last = trail.value[0]?.at ?? -Infinity;
    heard.value += history.filter((trace) => trace.at > last).length;
    trail.value = history.slice(0, MAX_TRAIL);
    trailRestarts.value++;
  } else if (event === "cleared") {
    // Something was redacted. The history comes again, without the texts.
    trail.value = trail.value.map((trace) => (trace.kind === "note" ? trace : { ...trace, object: undefined, text: "" }));
    trailRestarts.value++;
  } else if (event === "trace") {
    const trace = data as Trace;
    trail.value = [trace, ...trail.value].slice(0, MAX_TRAIL);
    heard.value++;
    if (trace.kind === "note") changed(notesVersion);
    else if (trace.writes) changed(memoryVersion);
  } else if (event === "layout") {
    laidOut();
  }
}

const timers = new Map<Signal<number>, number>();
/** Has views read again, once for changes that come together. */
function changed(version: Signal<number>) {
  if (!timers.has(version)) {
    timers.set(
      version,
      window.setTimeout(() => {
        timers.delete(version);
        version.value++;
        graphChanged();
      }, 100),
    );
  }
}

let following = false;
/** Follows the stream for as long as the page is signed in, and comes back to it when the server does. */
export async function follow() {
  if (following) return;
  following = true;
  let pause = 500;
  while (signedIn.value) {
    const stop = new AbortController();
    try {
      await api.events((event) => {
        pause = 500;
        take(event);
      }, stop.signal);
    } catch {
      // Below: retried.
    }
    stop.abort();
    if (!signedIn.value) break;
    connection.value = "lost";
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, 5_000);
  }
  following = false;
}

api.whenSignedOut((what) => {
  ended.value = what;
  signedIn.value = false;
});
