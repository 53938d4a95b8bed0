// The frame around the views: top bar, side bar, inspector, status bar; and the keys that work everywhere.
import type { ComponentType } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { exchange, setToken } from "./api";
import { go, href, route, type View } from "./router";
import { connection, ended, follow, graph, graphError, isDark, loadGraph, signedIn, status, toggleTheme } from "./state";
import { plural } from "./ui/format";
import { Icon, type IconName, Logo } from "./ui/icons";
import { Inspector, selection } from "./ui/inspector";
import { CommandMenu, Help, helpOpen, menuOpen } from "./ui/menu";
import { PathPicker } from "./ui/path_picker";
import { Changes } from "./views/changes";
import { Health } from "./views/health";
import { Home } from "./views/home";
import { Memory } from "./views/memory";
import { Note } from "./views/note";
import { Failed, GraphSkeleton } from "./ui/states";
import { Search } from "./views/search";

const VIEWS: [View, string, IconName][] = [
  ["home", "Home", "home"],
  ["graph", "Graph", "graph"],
  ["search", "Search", "search"],
  ["memory", "Memory", "memory"],
  ["changes", "Changes", "changes"],
  ["health", "Health", "health"],
];

export function App() {
  const isIn = signedIn.value;
  useEffect(() => {
    if (isIn) follow();
  }, [isIn]);
  if (!isIn) return <SignIn />;
  return <Frame />;
}

function Frame() {
  const { view, arg } = route.value;
  const main = useRef<HTMLElement>(null);
  useKeys();
  useEffect(() => {
    main.current?.scrollTo(0, 0);
    if (view !== "note") document.title = `${VIEWS.find(([name]) => name === view)?.[1] ?? "Quipu"} · ${status.value?.vault ?? "Quipu"}`;
  }, [view, arg]);
  useEffect(() => {
    // A selection belongs to the view it was made in; the graph makes its own from the address.
    if (view !== "graph") selection.value = null;
  }, [view]);
  return (
    <div class={`frame ${selection.value ? "has-inspector" : ""}`}>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>
        Skip to content
      </a>
      <TopBar />
      <nav class="side" aria-label="Views">
        {VIEWS.map(([name, label, icon]) => (
          <a key={name} href={href(name)} aria-current={view === name ? "page" : undefined}>
            <Icon name={icon} />
            <span>{label}</span>
          </a>
        ))}
      </nav>
      <main id="main" ref={main} tabIndex={-1} class={`main-${view}`}>
        {connection.value === "lost" && (
          <p class="banner" role="status">
            The server does not answer. This page may be out of date; it reconnects by itself.
          </p>
        )}
        {view === "home" && <Home />}
        {view === "graph" && <Lazy arg={arg} />}
        {view === "search" && <Search />}
        {view === "note" && <Note arg={arg} />}
        {view === "memory" && <Memory arg={arg} />}
        {view === "changes" && <Changes />}
        {view === "health" && <Health />}
      </main>
      <Inspector />
      <StatusBar />
      <CommandMenu />
      <PathPicker />
      <Help />
    </div>
  );
}

/** The graph brings the drawing library, which the other views do not need. */
function Lazy({ arg }: { arg: string }) {
  const [View, setView] = useState<ComponentType<{ arg: string }> | null>(null);
  const [failed, setFailed] = useState<Error | null>(null);
  const load = () => {
    setFailed(null);
    // Both at once: what is drawn, and what draws it.
    if (!graph.value) loadGraph();
    import("./views/graph").then((module) => setView(() => module.default), setFailed);
  };
  useEffect(load, []);
  if (failed) return <Failed what="The graph cannot be loaded" error={failed} retry={load} />;
  // One skeleton for both.
  return View && (graph.value || graphError.value) ? <View arg={arg} /> : <GraphSkeleton />;
}

function TopBar() {
  const agents = status.value?.clients.length ?? 0;
  const isLive = connection.value === "live";
  return (
    <header class="top">
      <a class="brand" href={href("home")}>
        <Logo />
        <span>{status.value?.vault ?? "Quipu"}</span>
      </a>
      <button class="jump" onClick={() => (menuOpen.value = true)}>
        <Icon name="search" size={15} />
        <span>Search or jump…</span>
        <kbd>{/Mac/.test(navigator.platform) ? "⌘K" : "Ctrl K"}</kbd>
      </button>
      <span class={`live ${connection.value}`} role="status">
        <i aria-hidden="true" />
        {isLive ? "live" : connection.value === "lost" ? "offline" : "connecting"}
        {isLive && agents > 0 && <span class="agents"> · {agents === 1 ? "1 agent" : `${agents} agents`}</span>}
      </span>
      <button class="icon-button" aria-label={isDark.value ? "Use light theme" : "Use dark theme"} onClick={toggleTheme}>
        <Icon name="theme" />
      </button>
      <button class="icon-button help-button" aria-label="Keys" onClick={() => (helpOpen.value = true)}>
        <Icon name="help" />
      </button>
    </header>
  );
}

function StatusBar() {
  const known = status.value;
  return (
    <footer class="status">
      {known ? (
        <>
          <span>{plural(known.notes, "note")}</span>
          <span>{plural(known.links, "link")}</span>
          <span>{plural(known.entities, "entity", "entities")}</span>
          {known.to_embed > 0 && <span>meaning {Math.floor((known.embedded / known.to_embed) * 100)} %</span>}
          <span>{known.indexed ? "index up to date" : "reading…"}</span>
          <span class="right">{known.scope === "read" ? "read only" : "may write"}</span>
        </>
      ) : (
        <span> </span>
      )}
    </footer>
  );
}

const GO: Record<string, View> = { h: "home", g: "graph", s: "search", m: "memory", c: "changes", e: "health" };

function useKeys() {
  useEffect(() => {
    let last = "";
    let timer = 0;
    const typed = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        menuOpen.value = !menuOpen.value;
        return;
      }
      const target = event.target as HTMLElement;
      const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable;
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      if (last === "g" && GO[event.key]) {
        event.preventDefault();
        go(GO[event.key]!);
        last = "";
        return;
      }
      last = event.key;
      clearTimeout(timer);
      timer = window.setTimeout(() => (last = ""), 800);
      if (event.key === "/") {
        event.preventDefault();
        go("search");
        document.querySelector<HTMLInputElement>(".search-box input")?.focus();
      } else if (event.key === "?") helpOpen.value = true;
      else if (event.key === "t") toggleTheme();
      else if (event.key === "Escape") selection.value = null;
      else if (event.key === "j" || event.key === "k") walk(event.key === "j" ? 1 : -1);
    };
    addEventListener("keydown", typed);
    return () => removeEventListener("keydown", typed);
  }, []);
}

/** Moves the focus through the rows of a view. */
function walk(step: number) {
  const rows = [...document.querySelectorAll<HTMLElement>("main .rows a, main .feed a, main .backlinks a, main .pair-head, main .result > a")];
  const active = document.activeElement;
  const at = rows.findIndex((row) => row === active || row.closest(".result")?.contains(active));
  rows[Math.max(0, Math.min(rows.length - 1, at + step))]?.focus();
}

const ENDED = {
  session: "This session has ended. A session ends after 12 hours without use, after 7 days, and when its server stops.",
  token: "The server does not accept this token any more. It was revoked, or it has expired.",
  link: "This link was used already, or it is older than 10 minutes.",
};

function SignIn() {
  const [value, setValue] = useState("");
  const [failed, setFailed] = useState("");
  const enter = async (event: Event) => {
    event.preventDefault();
    const typed = value.trim();
    if (!typed) return;
    // A pasted link carries its secret behind `#k=`; anything else is a token.
    const secret = /#k=([\w-]+)/.exec(typed)?.[1];
    try {
      if (secret) await exchange(secret);
      else setToken(typed);
      signedIn.value = true;
    } catch (error) {
      setFailed((error as Error).message);
    }
  };
  return (
    <main class="sign-in">
      <form onSubmit={enter}>
        <Logo />
        <h1>Quipu explorer</h1>
        {ended.value && (
          <p class="notice amber" role="status">
            {ENDED[ended.value]}
          </p>
        )}
        <p>
          Run <code>quipu open</code> on the machine that has the vault. It opens this page with a link that works once.
        </p>
        <label>
          Or paste a token (<code>quipu token new</code>)
          <input class="field" type="password" autocomplete="off" value={value} onInput={(event) => setValue(event.currentTarget.value)} />
        </label>
        {failed && <p class="notice stale" role="alert">{failed}</p>}
        <button class="button primary" type="submit">
          Open
        </button>
      </form>
    </main>
  );
}
