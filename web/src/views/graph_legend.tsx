// The legend of the graph, which is also its filter: categories of nodes, types of links, and time.
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Painted } from "../graph/colours";
import { linkTypes } from "../graph/link_types";
import type { Model } from "../graph/model";
import type { Look } from "../graph/overlay";
import { type Shape, shapePath } from "../graph/shapes";
import { isDark } from "../state";
import { count, plural } from "../ui/format";
import { Icon } from "../ui/icons";
import { clearFilters, type GraphFilter, NOTHING, setOff, setOffTypes, useSince } from "./graph_filter";

export function Legend({ model, look, children }: { model: Model; look: Look; children: ComponentChildren }) {
  const [open, setOpen] = useState(() => innerWidth > 900);
  const shown = useMemo(() => {
    let shown = 0;
    for (let node = 0; node < model.size; node++) if (look.colour(node)) shown++;
    return shown;
  }, [model, look]);
  return (
    <section class={`legend ${open ? "" : "folded"}`} aria-label="Legend and filter">
      <button class="legend-head" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span>
          {count(shown)} of {plural(model.size, "node")}
        </span>
        <Icon name={open ? "minus" : "plus"} size={14} />
      </button>
      {open && children}
    </section>
  );
}

export function Filters({ model, painted, filter }: { model: Model; painted: Painted; filter: GraphFilter }) {
  const { by, off, offTypes, from } = filter;
  const [since, setSince] = useSince(model, from);
  const types = useMemo(() => linkTypes(model, isDark.value), [model, isDark.value]);
  const isFiltered = offTypes.size > 0 || Object.values(off).some((hidden) => hidden.size > 0);
  const nodes = painted.legend.map(({ category, ...row }) => ({
    ...row, key: category, swatch: <Swatch colour={row.colour} shape={row.shape} />,
  }));
  const links = types.map(({ name, label, count, colour }) => ({ key: name, label, count, swatch: <Line colour={colour} /> }));
  return (
    <>
      <Rows key={by} name="categories" rows={nodes} hidden={off[by] ?? NOTHING} change={(hidden) => setOff(model, by, hidden)} shown={9} />
      {links.length > 1 && (
        <div class="links">
          <h2>Links</h2>
          <Rows name="types of links" rows={links} hidden={offTypes} change={(hidden) => setOffTypes(model, hidden)} shown={5} />
        </div>
      )}
      {isFiltered && (
        <p class="rest">
          <button class="text-button" onClick={clearFilters}>
            Clear filters
          </button>
        </p>
      )}
      <label class="slider">
        <span>{from ? `Changed since ${new Date(from * 1000).toISOString().slice(0, 10)}` : "Any time"}</span>
        <input type="range" min="0" max="99" value={since} onInput={(event) => setSince(Number(event.currentTarget.value))} aria-label="Changed since" />
      </label>
      {by === "freshness" && <p class="rest">A note is tracked when its frontmatter names files under source_refs.</p>}
      {by === "tag" && <p class="rest">A note with several tags counts under each, and is shown while one of them is.</p>}
      {model.size > model.notes && (
        <p class="shapes">
          <Swatch colour="currentColor" /> note <Swatch colour="currentColor" shape="square" /> memory
        </p>
      )}
    </>
  );
}

interface Row {
  key: string;
  label: string;
  count: number;
  swatch: ComponentChildren;
}

/** Rows to show and hide, each or all but one; the first of them, and the rest on demand. */
function Rows({ name, rows, hidden, change, shown }: { name: string; rows: Row[]; hidden: ReadonlySet<string>; change: (hidden: ReadonlySet<string>) => void; shown: number }) {
  const [all, setAll] = useState(false);
  const [filter, setFilter] = useState("");
  const words = filter.trim().toLowerCase();
  const found = words ? rows.filter((row) => row.label.toLowerCase().includes(words)) : rows;
  const toggle = (key: string) => {
    const next = new Set(hidden);
    if (!next.delete(key)) next.add(key);
    change(next);
  };
  const isOnly = (key: string) => !hidden.has(key) && hidden.size === rows.length - 1;
  const only = (key: string) => change(isOnly(key) ? NOTHING : new Set(rows.map((row) => row.key).filter((other) => other !== key)));
  return (
    <>
      {all && (
        <input
          class="field small-field"
          type="search"
          aria-label={`Find in ${name}`}
          placeholder={`Find in ${count(rows.length)} ${name}`}
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
      )}
      <ul class={all ? "all" : ""}>
        {(all ? found : rows.slice(0, shown)).map((row) => (
          <li key={row.key}>
            <button aria-pressed={!hidden.has(row.key)} onClick={() => toggle(row.key)} title={row.label}>
              {row.swatch}
              <span class="name">{row.label}</span>
              <span class="count">{count(row.count)}</span>
            </button>
            {rows.length > 1 && (
              <button class="only" aria-pressed={isOnly(row.key)} aria-label={`Only ${row.label}`} onClick={() => only(row.key)}>
                only
              </button>
            )}
          </li>
        ))}
      </ul>
      {all && !found.length && <p class="rest">Nothing has these letters.</p>}
      {rows.length > shown && (
        <p class="rest">
          <button
            class="text-button"
            aria-expanded={all}
            onClick={() => {
              setAll(!all);
              setFilter("");
            }}
          >
            {all ? "Show fewer" : `Show all ${count(rows.length)}`}
          </button>
        </p>
      )}
    </>
  );
}

export function Swatch({ colour, shape = "circle" }: { colour: string; shape?: Shape }) {
  return (
    <svg width="12" height="12" class="swatch" aria-hidden="true">
      <path d={shapePath(shape, 6, shape === "triangle" ? 7 : shape === "point-down" ? 5 : 6, 4)} fill={colour} fill-rule="evenodd" />
    </svg>
  );
}

/** A plain link is a thin line; typed ones are thicker, with an arrow. */
function Line({ colour }: { colour: string | null }) {
  return (
    <svg width="18" height="10" class="swatch" aria-hidden="true">
      <path d={colour ? "M0 5H12" : "M0 5H18"} stroke={colour ?? "currentColor"} stroke-width={colour ? 2 : 1} />
      {colour && <path d="M11 1L18 5L11 9Z" fill={colour} />}
    </svg>
  );
}
