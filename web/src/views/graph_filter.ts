// What of the graph is shown, and how: kept in the address, so that a link shows the same.
import { useEffect, useMemo, useState } from "preact/hooks";
import { type ColourBy, COLOURINGS, colour } from "../graph/colours";
import type { HiddenTypes, Model } from "../graph/model";
import { route, setParam, setParams } from "../router";
import { isDark } from "../state";

export interface GraphFilter {
  by: ColourBy;
  /** The hidden categories, for each way to colour: a filter by folder stays when the colours show tags. */
  off: Partial<Record<ColourBy, ReadonlySet<string>>>;
  /** The names of the types of links that are hidden, and their places. */
  offTypes: ReadonlySet<string>;
  hiddenTypes: HiddenTypes;
  /** Seconds since 1970; older nodes are hidden. */
  from: number;
  /** Only what is near the selected node. */
  isLocal: boolean;
  /** Letters of the nodes to find. */
  find: string;
}

const CHOSEN = "quipu.colour";
export const NOTHING: ReadonlySet<string> = new Set();

/** `hide.NAME` lists what is hidden; where that is nearly everything, `show.NAME` lists the rest. */
function hiddenOf(params: URLSearchParams, name: string, all: () => string[]): ReadonlySet<string> {
  const shown = params.getAll(`show.${name}`);
  return new Set(shown.length ? all().filter((key) => !shown.includes(key)) : params.getAll(`hide.${name}`));
}

function setHidden(params: URLSearchParams, name: string, hidden: ReadonlySet<string>, all: string[]) {
  params.delete(`hide.${name}`);
  params.delete(`show.${name}`);
  const shown = all.filter((key) => !hidden.has(key));
  if (shown.length && shown.length < hidden.size) for (const key of shown) params.append(`show.${name}`, key);
  else for (const key of hidden) params.append(`hide.${name}`, key);
}

const categoriesOf = (model: Model, by: ColourBy) => colour(model, by, isDark.value).legend.map(({ category }) => category);
const LINKS = "links";

export function useGraphFilter(model: Model): GraphFilter {
  const { params } = route.value;
  const hidden = JSON.stringify([...params].filter(([name]) => /^(hide|show)\./.test(name)));
  const chosen = useMemo(() => {
    const off: GraphFilter["off"] = {};
    for (const by of COLOURINGS) {
      const hidden = hiddenOf(params, by, () => categoriesOf(model, by));
      if (hidden.size) off[by] = hidden;
    }
    const offTypes = hiddenOf(params, LINKS, () => model.data.link_types);
    return { off, offTypes, hiddenTypes: new Set(model.data.link_types.flatMap((name, type) => (offTypes.has(name) ? [type] : []))) };
  }, [model, hidden]);
  const wanted = params.get("by") ?? localStorage.getItem(CHOSEN);
  return {
    ...chosen,
    by: COLOURINGS.find((by) => by === wanted) ?? "community",
    from: Number(params.get("since")) || 0,
    isLocal: params.has("around"),
    find: params.get("find") ?? "",
  };
}

export function setColouring(by: ColourBy) {
  localStorage.setItem(CHOSEN, by);
  setParam("by", by);
}
export const setOff = (model: Model, by: ColourBy, hidden: ReadonlySet<string>) => setParams((params) => setHidden(params, by, hidden, categoriesOf(model, by)));
export const setOffTypes = (model: Model, hidden: ReadonlySet<string>) => setParams((params) => setHidden(params, LINKS, hidden, model.data.link_types));
export const setLocal = (isLocal: boolean) => setParam("around", isLocal ? "2" : null);
export const setFind = (letters: string) => setParam("find", letters);
export function clearFilters() {
  setParams((params) => {
    for (const name of [...COLOURINGS, LINKS]) {
      params.delete(`hide.${name}`);
      params.delete(`show.${name}`);
    }
  });
}

/** The place of the time filter on its slider, in percent of all nodes by age; and how to move it. */
export function useSince(model: Model, from: number): [number, (place: number) => void] {
  const times = useMemo(() => Float64Array.from(model.modified).sort(), [model]);
  const timeAt = (place: number) => (place ? times[Math.min(times.length - 1, Math.floor((place / 100) * times.length))]! : 0);
  const placeOf = (from: number) => (from ? Math.min(99, Math.ceil((100 * times.filter((time) => time < from).length) / times.length)) : 0);
  const [place, setPlace] = useState(() => placeOf(from));
  useEffect(() => {
    if (timeAt(place) !== from) setPlace(placeOf(from));
  }, [from]);
  const move = (place: number) => {
    setPlace(place);
    setParam("since", place ? String(timeAt(place)) : null);
  };
  return [place, move];
}
