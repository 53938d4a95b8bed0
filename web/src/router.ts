// Addresses: `#/VIEW/ARGUMENT`. In the fragment, so that names of notes are never sent or logged.
import { signal } from "@preact/signals";

export type View = "home" | "graph" | "search" | "note" | "memory" | "changes" | "health";
export interface Route {
  view: View;
  arg: string;
}

const VIEWS: View[] = ["home", "graph", "search", "note", "memory", "changes", "health"];

function parse(hash: string): Route {
  const [, view = "", ...rest] = hash.replace(/^#/, "").split("/");
  const known = VIEWS.find((name) => name === view) ?? "home";
  let arg = rest.join("/");
  try {
    arg = decodeURIComponent(arg);
  } catch {
    // A half-typed escape in the address bar is taken as it stands.
  }
  return { view: known, arg };
}

export const route = signal<Route>(parse(location.hash));

export function href(view: View, arg: string | number = ""): string {
  const tail = String(arg).split("/").map(encodeURIComponent).join("/");
  if (view === "home") return "#/";
  return tail ? `#/${view}/${tail}` : `#/${view}`;
}

export function go(view: View, arg: string | number = "", replace = false) {
  const to = href(view, arg);
  if (replace) {
    history.replaceState(null, "", to);
    route.value = parse(to);
  } else if (location.hash !== to) {
    location.hash = to;
  }
}

addEventListener("hashchange", () => {
  route.value = parse(location.hash);
});
