// One note with all of its links. Of a long note or of a hub the tool lists only some, and the graph has the others.
import { call } from "./api";
import { graph, graphError, loadGraph } from "./state";
import type { GraphData, LinkedPage, Page } from "./types";

export async function readPage(path: string, stop?: AbortSignal): Promise<Page> {
  const page = await call<Page>("ubp_get_page", { filepath: path }, stop);
  if (page.outlinks_total === undefined && page.backlinks_total === undefined) return page;
  await loadGraph();
  if (graphError.value) throw graphError.value;
  return withAllLinks(page, graph.value!);
}

function withAllLinks(page: Page, { notes, edges, link_types }: GraphData): Page {
  const own = notes.id.indexOf(page.filepath);
  // A note that is newer than the graph.
  if (own < 0) return page;
  const known = new Map([...page.outlinks, ...page.backlinks].map((link) => [`${link.filepath} ${link.link_type}`, link]));
  const link = (note: number, type: number): LinkedPage => {
    const [filepath, link_type] = [notes.id[note]!, link_types[type]!];
    return known.get(`${filepath} ${link_type}`) ?? { doc_id: "", filepath, title: notes.title[note]!, link_type };
  };
  const [outlinks, backlinks]: [LinkedPage[], LinkedPage[]] = [[], []];
  for (let at = 0; at < edges.length; at += 3) {
    const [source, target, type] = [edges[at]!, edges[at + 1]!, edges[at + 2]!];
    if (source >= notes.id.length) continue;
    if (source === own) outlinks.push(link(target, type));
    if (target === own) backlinks.push(link(source, type));
  }
  return { ...page, outlinks, backlinks, outlinks_total: undefined, backlinks_total: undefined };
}

/** All of the text. Of a long one `content` has only the beginning, and the sections have everything but the lines of headings. */
export const wholeText = (page: Page) =>
  page.truncated ? page.sections.map(({ heading, content }) => (heading ? `## ${heading}\n${content}` : content)).join("\n\n") : page.content;
