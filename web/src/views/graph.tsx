// The whole vault and memory in one picture. The drawing library is loaded with this view alone.
import { useEffect, useMemo, useRef } from "preact/hooks";
import { type ColourBy, COLOURINGS, colour, type Painted } from "../graph/colours";
import { linkTypes } from "../graph/link_types";
import { addressOfNodes, around, bonds, buildModel, isEntity, keyOf, type Model, nodesOfAddress, shortestPath } from "../graph/model";
import type { Look } from "../graph/overlay";
import { Scene } from "../graph/scene";
import { go, route } from "../router";
import { graph, graphError, isDark, loadGraph } from "../state";
import { plural } from "../ui/format";
import { Icon } from "../ui/icons";
import { selection } from "../ui/inspector";
import { pathFrom } from "../ui/path_picker";
import { Empty, Failed, layingOut } from "../ui/states";
import { type GraphFilter, setColouring, setFind, setLocal, useGraphFilter } from "./graph_filter";
import { Filters, Legend } from "./graph_legend";

/** A colour multiplied by its alpha already, as the drawing library blends them. */
function faint(hex: string, alpha: number): string {
  const part = (at: number) => Math.round(Number.parseInt(hex.slice(at, at + 2), 16) * alpha);
  return `rgba(${part(1)},${part(3)},${part(5)},${alpha})`;
}

const models = new WeakMap<object, Model>();
function modelOf(data: NonNullable<typeof graph.value>): Model {
  let model = models.get(data);
  if (!model) models.set(data, (model = buildModel(data)));
  return model;
}

const style = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export default function GraphView({ arg }: { arg: string }) {
  const data = graph.value;
  if (graphError.value && !data) return <Failed what="The graph cannot be loaded" error={graphError.value} retry={loadGraph} />;
  if (!data) return null;
  if (!data.x.length) {
    return (
      <Empty icon="graph" title="Nothing to draw yet">
        <p>Each note and each entity of memory becomes a node here, and each link an edge.</p>
      </Empty>
    );
  }
  return <Picture arg={arg} model={modelOf(data)} />;
}

/** Colours of edges: plain ones are those of their group where both ends have it; the more there are, the fainter each. */
function edgeColours(model: Model, painted: Painted, typeColour: (type: number) => string | null, dark: boolean) {
  // A hundred thousand lines must not hide the nodes.
  const density = Math.min(1, Math.sqrt(3_000 / Math.max(1, model.data.edges.length / 3)));
  const neutral = faint(dark ? "#a0a6b2" : "#5c6472", 0.03 + 0.3 * density);
  const tinted = new Map([...painted.colours].map(([category, colour]) => [category, faint(colour, 0.1 + 0.4 * density)]));
  const typed = model.data.link_types.map((_, type) => typeColour(type)).map((colour) => colour && faint(colour, 0.3 + 0.6 * density));
  return (source: number, target: number, type: number) => {
    const [category] = painted.categories[source]!;
    return typed[type] ?? (category === painted.categories[target]![0] ? tinted.get(category!)! : neutral);
  };
}

/** The colour that at least half of a group has. */
function groupColour(colour: Look["colour"], members: number[]): string | null {
  const counts = new Map<string, number>();
  for (const node of members) {
    const own = colour(node);
    if (own) counts.set(own, (counts.get(own) ?? 0) + 1);
  }
  const [most, number] = [...counts].sort((a, b) => b[1] - a[1])[0] ?? [null, 0];
  return number * 2 >= members.length ? most : null;
}

/** How the graph looks with the chosen colours and filters. */
function useLook(model: Model, filter: GraphFilter, nearby: Set<number> | null): { look: Look; painted: Painted } {
  const { by, off, hiddenTypes, from } = filter;
  const dark = isDark.value;
  const painted = useMemo(() => colour(model, by, dark), [model, by, dark]);
  const look = useMemo(() => {
    const types = new Map(linkTypes(model, dark).map((row) => [row.type, row]));
    const others = (Object.entries(off) as [ColourBy, ReadonlySet<string>][])
      .filter(([name, hidden]) => name !== by && hidden.size > 0)
      .map(([name, hidden]) => ({ hidden, categories: colour(model, name, dark).categories }));
    const own = off[by];
    const typeColour = (type: number) => types.get(type)!.colour;
    // With several tags, the first that is not hidden.
    const categoryOf = (node: number) => painted.categories[node]!.find((category) => !own?.has(category));
    const colourOf = (node: number) => {
      if ((nearby && !nearby.has(node)) || model.modified[node]! < from) return null;
      if (others.some(({ hidden, categories }) => categories[node]!.every((category) => hidden.has(category)))) return null;
      const category = categoryOf(node);
      return category === undefined ? null : painted.colours.get(category)!;
    };
    return {
      dark,
      background: style("--background"),
      text: style("--text"),
      muted: style("--muted"),
      accent: style("--accent"),
      edge: edgeColours(model, painted, typeColour, dark),
      typeColour,
      typeName: (type: number) => types.get(type)!.label,
      hiddenTypes,
      colour: colourOf,
      shape: (node: number) => (isEntity(model, node) ? ("square" as const) : (painted.shapes.get(categoryOf(node) ?? "") ?? "circle")),
      groupColour: (members: number[]) => groupColour(colourOf, members),
    };
  }, [model, painted, off, hiddenTypes, from, nearby]);
  return { look, painted };
}

const SMALL = 60;

/** Behind the next layout: the inspector takes its part of the picture first. */
const afterLayout = (work: () => void) => requestAnimationFrame(() => requestAnimationFrame(work));

function Picture({ arg, model }: { arg: string; model: Model }) {
  const place = useRef<HTMLDivElement>(null);
  const scene = useRef<Scene | null>(null);
  const camera = useRef<ReturnType<Scene["cameraState"]> | null>(null);
  const filter = useGraphFilter(model);
  const { by, hiddenTypes, isLocal, find } = filter;
  // The address says what is selected: one node, or the ends of a path.
  const picked = useMemo(() => nodesOfAddress(model, arg), [model, arg]);
  const nearby = useMemo(() => (isLocal && picked.length ? around(model, picked[0]!, 2, hiddenTypes) : null), [isLocal, picked, model, hiddenTypes]);
  const path = useMemo(() => (picked.length === 2 ? shortestPath(model, picked[0]!, picked[1]!, hiddenTypes) : null), [picked, model, hiddenTypes]);
  const { look, painted } = useLook(model, filter, nearby);

  // Each selection is a step that Back undoes.
  const choose = (nodes: number[]) => go("graph", addressOfNodes(model, nodes), { params: route.value.params });
  const clicked = useRef(false);
  /** The address whose nodes are in sight. */
  const shown = useRef("");
  const now = useRef({ choose, picked });
  now.current = { choose, picked };

  useEffect(() => {
    const start = performance.now();
    const drawn = new Scene(place.current!, model, look, {
      click: (node, shift) => {
        clicked.current = true;
        const [first] = now.current.picked;
        now.current.choose(shift && first !== undefined && first !== node ? [first, node] : [node]);
      },
      clickStage: () => now.current.choose([]),
      open: (node) => (isEntity(model, node) ? go("memory", model.data.entities.id[node - model.notes]!) : go("note", keyOf(model, node))),
    });
    scene.current = drawn;
    if (camera.current) drawn.setCamera(camera.current);
    performance.measure("quipu.picture", { start, end: performance.now() });
    place.current!.dataset.drawn = "true";
    (window as { quipuScene?: Scene }).quipuScene = drawn;
    return () => {
      // In the layout nothing is where the draft had it.
      camera.current = model.data.settled ? drawn.cameraState() : null;
      if (!model.data.settled) shown.current = "";
      drawn.destroy();
      scene.current = null;
    };
  }, [model]);

  useEffect(() => scene.current?.recolour(look), [look]);
  useEffect(() => scene.current?.select(picked, path), [picked, path, model]);
  useEffect(() => {
    const words = find.trim().toLowerCase();
    if (!words) return scene.current?.highlight(null);
    const found = model.order.filter((node) => model.names[node]!.toLowerCase().includes(words)).slice(0, 300);
    scene.current?.highlight(new Set(found));
    if (found.length && found.length < 40) scene.current?.show(found);
  }, [find, model]);
  useEffect(() => {
    const last = picked[picked.length - 1];
    if (last === undefined) selection.value = null;
    else if (isEntity(model, last)) selection.value = { kind: "entity", id: model.data.entities.id[last - model.notes]! };
    else selection.value = { kind: "note", id: keyOf(model, last) };
    // What was clicked is in sight already; a picture that only got a new note stays where it is.
    const isNew = shown.current !== arg;
    shown.current = arg;
    if (last !== undefined && isNew && !clicked.current) {
      // Of a small graph all is shown: nothing is cut at the edges.
      const wanted = model.size <= SMALL ? model.order : (path ?? [...around(model, last, 1)]);
      afterLayout(() => scene.current?.show(wanted, true));
    }
    clicked.current = false;
  }, [picked]);
  useEffect(() => {
    if (nearby) afterLayout(() => scene.current?.show([...nearby], true));
  }, [isLocal]);

  /** Walks through the nodes by importance, for those who use no mouse. */
  const next = (step: number) => {
    const at = picked[0] === undefined ? -1 : model.order.indexOf(picked[0]);
    choose([model.order[(at + step + model.size) % model.size]!]);
  };
  const keys = (event: KeyboardEvent) => {
    const drawn = scene.current;
    if (!drawn || (event.target as HTMLElement).tagName === "INPUT") return;
    const step: Record<string, () => void> = {
      ArrowLeft: () => drawn.pan(-1, 0),
      ArrowRight: () => drawn.pan(1, 0),
      ArrowUp: () => drawn.pan(0, 1),
      ArrowDown: () => drawn.pan(0, -1),
      "+": () => drawn.zoom(1 / 1.4),
      "=": () => drawn.zoom(1 / 1.4),
      "-": () => drawn.zoom(1.4),
      "0": () => drawn.reset(),
      Escape: () => choose([]),
      n: () => next(1),
      p: () => next(-1),
      f: () => picked[0] !== undefined && (pathFrom.value = keyOf(model, picked[0])),
      l: () => picked.length > 0 && setLocal(!isLocal),
    };
    const isCanvas = event.target === place.current;
    if (isCanvas) step.Enter = () => picked[0] !== undefined && !isEntity(model, picked[0]) && go("note", keyOf(model, picked[0]));
    const action = step[event.key];
    if (action && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      action();
    }
  };

  return (
    <div class="view graph" onKeyDown={keys} aria-busy={!model.data.settled}>
      <h1 class="visually-hidden">Graph</h1>
      <div
        class="canvas"
        ref={place}
        tabIndex={0}
        role="application"
        aria-label={`Graph of ${plural(model.notes, "note")} and ${plural(model.size - model.notes, "entity", "entities")}. Arrow keys move, plus and minus zoom, n and p walk through nodes, f finds a path, l shows what is around a node, Enter opens.`}
      />
      <div class="graph-top">
        <label class="graph-search">
          <Icon name="search" size={15} />
          <input type="search" placeholder="Find in graph" value={find} onInput={(event) => setFind(event.currentTarget.value)} aria-label="Find in graph" />
        </label>
        <div class="segments" role="group" aria-label="Colour by">
          {COLOURINGS.map((name) => (
            <button key={name} aria-pressed={by === name} onClick={() => setColouring(name)}>
              {{ community: "Groups", folder: "Folder", tag: "Tag", type: "Type", changed: "Changed", freshness: "Freshness", author: "Author" }[name]}
            </button>
          ))}
        </div>
      </div>
      <Legend model={model} look={look}>
        <Filters model={model} painted={painted} filter={filter} />
      </Legend>
      <div class="graph-tools">
        {picked.length > 0 && (
          <button class={`button ${isLocal ? "primary" : ""}`} aria-pressed={isLocal} onClick={() => setLocal(!isLocal)}>
            Only around it
          </button>
        )}
        <span class="zoom">
          <button class="icon-button" aria-label="Zoom in" onClick={() => scene.current?.zoom(1 / 1.6)}>
            <Icon name="plus" />
          </button>
          <button class="icon-button" aria-label="Zoom out" onClick={() => scene.current?.zoom(1.6)}>
            <Icon name="minus" />
          </button>
          <button class="icon-button" aria-label="Show all" onClick={() => scene.current?.reset()}>
            <Icon name="fit" />
          </button>
        </span>
      </div>
      <Hint model={model} look={look} picked={picked} path={path} />
    </div>
  );
}

/** What the selection is good for, and the path in words. */
function Hint({ model, look, picked, path }: { model: Model; look: Look; picked: number[]; path: number[] | null }) {
  if (!picked.length) {
    return (
      <p class="graph-hint" aria-live="polite">
        {!model.data.settled && layingOut()}
      </p>
    );
  }
  if (picked.length === 1) {
    return (
      <p class="graph-hint keys-hint" aria-live="polite">
        Shift-click a second node for the path, or press <kbd>f</kbd>
      </p>
    );
  }
  if (!path) {
    const [from, to] = picked.map((node) => model.names[node]);
    return (
      <p class="graph-hint" aria-live="polite">
        No path between {from} and {to}
        {look.hiddenTypes.size > 0 && " over the links that are shown"}
      </p>
    );
  }
  const step = (node: number, before: number | undefined) => {
    const bond = before === undefined ? undefined : bonds(model, before, look.hiddenTypes).find(({ other }) => other === node);
    const named = (types: Set<number>) => [...types].filter((type) => look.typeColour(type)).map(look.typeName).join(", ");
    const link = !bond ? "" : named(bond.out) ? `→ ${named(bond.out)} →` : named(bond.into) ? `← ${named(bond.into)} ←` : !bond.into.size ? "→" : bond.out.size ? "↔" : "←";
    return (
      <span key={node}>
        {bond && <span class="muted"> {link} </span>}
        {model.names[node]}
      </span>
    );
  };
  return (
    <p class="graph-hint" aria-live="polite">
      <strong>Path of {plural(path.length - 1, "link")}</strong> {path.map((node, at) => step(node, path[at - 1]))}
    </p>
  );
}
