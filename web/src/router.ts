// Addresses: `#/VIEW/ARGUMENT?NAME=VALUE`. In the fragment, so that names of notes are never sent or logged.
import { signal } from "@preact/signals";

export type View = "home" | "graph" | "search" | "note" | "memory" | "changes" | "health";
export interface Route {
  view: View;
  arg: string;
  /** Filters and the like: what a shared address needs to show the same. */
  params: URLSearchParams;
}

const VIEWS: View[] = ["home", "graph", "search", "note", "memory", "changes", "health"];

function parse(hash: string): Route {
  const text = hash.replace(/^#/, "");
  const [path, query] = text.includes("?") ? [text.slice(0, text.indexOf("?")), text.slice(text.indexOf("?") + 1)] : [text, ""];
  const [, view = "", ...rest] = path.split("/");
  const known = VIEWS.find((name) => name === view) ?? "home";
  let arg = rest.join("/");
  try {
    arg = decodeURIComponent(arg);
  } catch {
    // A half-typed escape in the address bar is taken as it stands.
  }
  return { view: known, arg, params: new URLSearchParams(query) };
}

export const route = signal<Route>(parse(location.hash));

export function href(view: View, arg: string | number = "", params?: URLSearchParams): string {
  const tail = String(arg).split("/").map(encodeURIComponent).join("/");
  const query = params && String(params) ? `?${params}` : "";
  return (view === "home" ? "#/" : tail ? `#/${view}/${tail}` : `#/${view}`) + query;
}

/** Browsers refuse an address that changes with every letter: it is written when the letters pause. */
const WRITE_MS = 120;
let writing = 0;
function writeAddress() {
  clearTimeout(writing);
  writing = 0;
  const { view, arg, params } = route.value;
  history.replaceState(null, "", href(view, arg, params));
}

export function go(view: View, arg: string | number = "", options: { replace?: boolean; params?: URLSearchParams } = {}) {
  const to = href(view, arg, options.params);
  if (options.replace) {
    route.value = parse(to);
    clearTimeout(writing);
    writing = window.setTimeout(writeAddress, WRITE_MS);
    return;
  }
  if (writing) writeAddress();
  if (location.hash !== to) location.hash = to;
}

/** Changes the parameters of the address. In place: a filter is no step that Back would undo. */
export function setParams(change: (params: URLSearchParams) => void) {
  const { view, arg, params } = route.value;
  const next = new URLSearchParams(params);
  change(next);
  if (String(next) !== String(params)) go(view, arg, { replace: true, params: next });
}

export function setParam(name: string, value: string | null) {
  setParams((params) => (value ? params.set(name, value) : params.delete(name)));
}

addEventListener("hashchange", () => {
  clearTimeout(writing);
  writing = 0;
  route.value = parse(location.hash);
});
addEventListener("pagehide", () => {
  if (writing) writeAddress();
});
