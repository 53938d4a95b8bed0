// The whole vault and memory in one picture. The drawing library is loaded with this view alone.
import { useComputed } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type ColourBy, colour } from "../graph/colours";
import { around, buildModel, entityKey, keyOf, type Model, noteKey, shortestPath } from "../graph/model";
import { Scene } from "../graph/scene";
import { go } from "../router";
import { graph, graphError, isDark, loadGraph } from "../state";
import { count, plural } from "../ui/format";
import { Icon } from "../ui/icons";
import { selection } from "../ui/inspector";
import { Empty, Failed } from "../ui/states";

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
  useEffect(() => {
    loadGraph();
  }, []);
  if (graphError.value && !data) return <Failed what="The graph cannot be loaded" error={graphError.value} retry={loadGraph} />;
  if (!data) return <div class="view graph loading" aria-busy="true" />;
  if (!data.x.length) {
    return (
      <Empty icon="graph" title="Nothing to draw yet">
        <p>Each note and each entity of memory becomes a node here, and each link an edge.</p>
      </Empty>
    );
  }
  return <Picture arg={arg} model={modelOf(data)} />;
}

function Picture({ arg, model }: { arg: string; model: Model }) {
  const place = useRef<HTMLDivElement>(null);
  const scene = useRef<Scene | null>(null);
  const camera = useRef<ReturnType<Scene["cameraState"]> | null>(null);
  const [by, setBy] = useState<ColourBy>(() => (localStorage.getItem("quipu.colour") as ColourBy) || "community");
  // What the legend hides, for each way to colour: a filter by folder stays when the colours show tags.
  const [off, setOff] = useState<Partial<Record<ColourBy, ReadonlySet<string>>>>({});
  const [since, setSince] = useState(0);
  const [query, setQuery] = useState("");
  const [picked, setPicked] = useState<number[]>([]);
  const [local, setLocal] = useState(false);
  const [hovered, setHovered] = useState<number | null>(null);
  const [legendOpen, setLegendOpen] = useState(() => innerWidth > 900);
  const dark = isDark.value;
  const painted = useMemo(() => colour(model, by, dark), [model, by, dark]);
  const filters = useMemo(
    () =>
      (Object.entries(off) as [ColourBy, ReadonlySet<string>][])
        .filter(([, hidden]) => hidden.size > 0)
        .map(([name, hidden]) => ({ hidden, categories: name === by ? painted.categories : colour(model, name, dark).categories })),
    [off, painted],
  );
  const times = useMemo(() => Float64Array.from(model.modified).sort(), [model]);
  const from = since ? times[Math.min(times.length - 1, Math.floor((since / 100) * times.length))]! : 0;
  const nearby = useMemo(() => (local && picked.length ? around(model, picked[0]!, 2) : null), [local, picked, model]);
  const path = useMemo(() => (picked.length === 2 ? shortestPath(model, picked[0]!, picked[1]!) : null), [picked, model]);

  // The more edges, the fainter each: a hundred thousand lines must not hide the nodes.
  const density = Math.min(1, Math.sqrt(3_000 / Math.max(1, model.data.edges.length / 3)));
  const neutral = faint(dark ? "#a0a6b2" : "#5c6472", 0.03 + 0.2 * density);
  const tinted = new Map([...painted.colours].map(([category, colour]) => [category, faint(colour, 0.1 + 0.3 * density)]));
  const edgeColour = (source: number, target: number) => {
    const category = painted.categories[source]!;
    return category === painted.categories[target] ? tinted.get(category)! : neutral;
  };

  const look = () => ({
    dark,
    background: style("--background"),
    text: style("--text"),
    muted: style("--muted"),
    edge: edgeColour,
    accent: style("--accent"),
    colour: (node: number) => {
      if (nearby && !nearby.has(node)) return null;
      const category = painted.categories[node]!;
      if (model.modified[node]! < from || filters.some((filter) => filter.hidden.has(filter.categories[node]!))) return null;
      return painted.colours.get(category)!;
    },
  });

  const choose = (nodes: number[]) => {
    setPicked(nodes);
    const last = nodes[nodes.length - 1];
    if (last === undefined) selection.value = null;
    else if (last < model.notes) selection.value = { kind: "note", id: model.data.notes.id[last]! };
    else selection.value = { kind: "entity", id: model.data.entities.id[last - model.notes]! };
    go("graph", last === undefined ? "" : last < model.notes ? `note/${keyOf(model, last)}` : `entity/${model.data.entities.id[last - model.notes]}`, true);
  };
  /** Behind the next layout: the inspector takes its part of the picture first. */
  const showChosen = (node: number) => requestAnimationFrame(() => requestAnimationFrame(() => scene.current?.show([...around(model, node, 1)], true)));
  const chooseNow = useRef(choose);
  chooseNow.current = choose;
  const pickedNow = useRef(picked);
  pickedNow.current = picked;

  useEffect(() => {
    const start = performance.now();
    const drawn = new Scene(place.current!, model, look(), {
      hover: setHovered,
      click: (node, shift) => {
        const first = pickedNow.current[0];
        chooseNow.current(shift && first !== undefined && first !== node ? [first, node] : [node]);
      },
      clickStage: () => chooseNow.current([]),
      open: (node) => (node < model.notes ? go("note", model.data.notes.id[node]!) : go("memory", model.data.entities.id[node - model.notes]!)),
    });
    scene.current = drawn;
    if (camera.current) drawn.setCamera(camera.current);
    performance.measure("quipu.picture", { start, end: performance.now() });
    place.current!.dataset.drawn = "true";
    (window as { quipuScene?: Scene }).quipuScene = drawn;
    return () => {
      camera.current = drawn.cameraState();
      drawn.destroy();
      scene.current = null;
    };
  }, [model]);

  useEffect(() => scene.current?.recolour(look()), [painted, filters, from, nearby]);
  useEffect(() => scene.current?.select(picked, path), [picked, path, model]);
  useEffect(() => {
    const words = query.trim().toLowerCase();
    if (!words) return scene.current?.highlight(null);
    const found = model.order.filter((node) => model.names[node]!.toLowerCase().includes(words)).slice(0, 300);
    scene.current?.highlight(new Set(found));
    if (found.length && found.length < 40) scene.current?.show(found);
  }, [query, model]);

  // The address names the selected node.
  useEffect(() => {
    const [kind = "", ...rest] = arg.split("/");
    const key = kind === "entity" ? entityKey(Number(rest[0])) : noteKey(rest.join("/"));
    const node = arg ? model.places.get(key) : undefined;
    if (node === undefined || node === pickedNow.current[pickedNow.current.length - 1]) return;
    choose([node]);
    showChosen(node);
  }, [arg, model]);

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
      n: () => nextNeighbour(1),
      p: () => nextNeighbour(-1),
      Enter: () => picked[0] !== undefined && picked[0] < model.notes && go("note", model.data.notes.id[picked[0]]!),
    };
    const action = step[event.key];
    if (action && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      action();
    }
  };
  /** Walks through the nodes by importance, for those who use no mouse. */
  const nextNeighbour = (step: number) => {
    const at = picked[0] === undefined ? -1 : model.order.indexOf(picked[0]);
    const node = model.order[(at + step + model.size) % model.size]!;
    choose([node]);
    showChosen(node);
  };

  const shownCount = useMemo(() => {
    const paint = look().colour;
    let shown = 0;
    for (let node = 0; node < model.size; node++) if (paint(node)) shown++;
    return shown;
  }, [painted, filters, from, nearby]);
  const hoveredName = useComputed(() => (hovered === null ? "" : model.names[hovered]!));

  return (
    <div class="view graph" onKeyDown={keys}>
      <h1 class="visually-hidden">Graph</h1>
      <div
        class="canvas"
        ref={place}
        tabIndex={0}
        role="application"
        aria-label={`Graph of ${plural(model.notes, "note")} and ${plural(model.size - model.notes, "entity", "entities")}. Arrow keys move, plus and minus zoom, n and p walk through nodes, Enter opens.`}
      />
      <div class="graph-top">
        <label class="graph-search">
          <Icon name="search" size={15} />
          <input type="search" placeholder="Find in graph" value={query} onInput={(event) => setQuery(event.currentTarget.value)} aria-label="Find in graph" />
        </label>
        <div class="segments" role="group" aria-label="Colour by">
          {(["community", "folder", "tag", "type", "changed", "freshness"] as const).map((name) => (
            <button
              key={name}
              aria-pressed={by === name}
              onClick={() => {
                setBy(name);
                localStorage.setItem("quipu.colour", name);
              }}
            >
              {{ community: "Groups", folder: "Folder", tag: "Tag", type: "Type", changed: "Changed", freshness: "Freshness" }[name]}
            </button>
          ))}
        </div>
      </div>
      <section class={`legend ${legendOpen ? "" : "folded"}`} aria-label="Legend and filter">
        <button class="legend-head" aria-expanded={legendOpen} onClick={() => setLegendOpen(!legendOpen)}>
          <span>
            {count(shownCount)} of {plural(model.size, "node")}
          </span>
          <Icon name={legendOpen ? "minus" : "plus"} size={14} />
        </button>
        {legendOpen && (
          <>
            <ul>
              {painted.legend.slice(0, 9).map((row) => (
                <li key={row.category}>
                  <button
                    aria-pressed={!off[by]?.has(row.category)}
                    onClick={() => {
                      const next = new Set(off[by]);
                      if (!next.delete(row.category)) next.add(row.category);
                      setOff({ ...off, [by]: next });
                    }}
                  >
                    <Swatch colour={row.colour} square={row.category.startsWith("Memory:")} />
                    <span class="name">{row.label}</span>
                    <span class="count">{count(row.count)}</span>
                  </button>
                </li>
              ))}
              {painted.legend.length > 9 && <li class="rest">and {count(painted.legend.length - 9)} more, in grey</li>}
            </ul>
            {filters.length > 0 && (
              <p class="rest">
                <button class="text-button" onClick={() => setOff({})}>
                  Clear filters
                </button>
              </p>
            )}
            <label class="slider">
              <span>{from ? `Changed since ${new Date(from * 1000).toISOString().slice(0, 10)}` : "Any time"}</span>
              <input type="range" min="0" max="99" value={since} onInput={(event) => setSince(Number(event.currentTarget.value))} aria-label="Changed since" />
            </label>
            {by === "freshness" && <p class="rest">A note is tracked when its frontmatter names files under source_refs.</p>}
            {model.size > model.notes && (
              <p class="shapes">
                <Swatch colour="currentColor" /> note <Swatch colour="currentColor" square /> memory
              </p>
            )}
          </>
        )}
      </section>
      <div class="graph-tools">
        {picked.length > 0 && (
          <button class={`button ${local ? "primary" : ""}`} aria-pressed={local} onClick={() => setLocal(!local)}>
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
      <p class="graph-hint" aria-live="polite">
        {picked.length === 2 ? (path ? `Path of ${plural(path.length - 1, "link")}: ${path.map((node) => model.names[node]).join(" → ")}` : "No path between these two") : picked.length ? "Shift-click another node for the path" : hoveredName.value}
      </p>
    </div>
  );
}

function Swatch({ colour, square }: { colour: string; square?: boolean }) {
  return (
    <svg width="10" height="10" class="swatch" aria-hidden="true">
      {square ? <rect width="9" height="9" x=".5" y=".5" fill={colour} /> : <circle cx="5" cy="5" r="5" fill={colour} />}
    </svg>
  );
}
