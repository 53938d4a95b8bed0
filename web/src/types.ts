// What the server answers, as far as the pages use it.

export interface Status {
  vault: string;
  /** The vault's folder, where the page is on the same machine. */
  folder?: string;
  version: string;
  scope: "read" | "write" | "admin";
  tools: string[];
  notes: number;
  links: number;
  broken_links: number;
  orphans: number;
  entities: number;
  observations: number;
  relations: number;
  embedded: number;
  to_embed: number;
  indexed: boolean;
  /** By kind, most frequent first. */
  warnings: WarningGroup[];
  warnings_total: number;
  clients: Client[];
  uptime_s: number;
  memory_mb: number;
  latency: Latency[];
  hour: LastHour;
}

/** Sixty numbers each, one a minute, the newest last. */
export interface LastHour {
  calls: number[];
  /** Files that waited for the index at most. */
  queue: number[];
  /** Passages with a vector, and passages. */
  embedded: number[];
  to_embed: number[];
  memory_mb: number[];
  p95_ms: Record<string, number[]>;
}

export interface WarningGroup {
  kind: "broken_link" | "frontmatter" | "limit" | "other";
  total: number;
  /** In order of path; not all of very many. */
  first: string[];
}

export interface Client {
  name: string;
  calls: number;
  last_s: number;
}

export interface Latency {
  tool: string;
  calls: number;
  failed: number;
  p50_ms: number;
  p95_ms: number;
}

/** The whole graph in columns: notes first, then entities. */
export interface GraphData {
  version: string;
  /** Whether the server has laid it out; until then the positions are a draft. */
  settled: boolean;
  folders: string[];
  types: string[];
  tags: string[];
  link_types: string[];
  notes: {
    id: string[];
    title: string[];
    folder: number[];
    type: number[];
    tags: number[][];
    modified: number[];
    rank: number[];
  };
  entities: { id: number[]; name: string[]; type: string[]; observations: number[]; modified: number[] };
  /** Notes that name their sources, by their place; every other note is untracked. */
  freshness: { fresh: number[]; possibly_stale: number[]; stale: number[] };
  /** Names of authors, and pairs of a note and an author by their places. */
  authors: string[];
  written: number[];
  x: number[];
  y: number[];
  community: number[];
  edges: number[];
}

export type Freshness = "fresh" | "possibly_stale" | "stale" | "untracked";

export interface LinkedPage {
  doc_id: string;
  filepath: string;
  title: string;
  link_type: string;
}

export interface Page {
  doc_id: string;
  filepath: string;
  title: string;
  doc_type: string;
  content: string;
  truncated?: { next_offset?: number; total_chars?: number };
  sections: { heading: string | null; content: string }[];
  outlinks: LinkedPage[];
  outlinks_total?: number;
  backlinks: LinkedPage[];
  backlinks_total?: number;
  staleness: Freshness;
  stale_refs: string[];
  /** When the first of them changed. */
  stale_since?: string;
  updated_at: string;
}

export interface NoteNode {
  id: string;
  title: string;
  content?: string;
  tags: string[];
  links: { id: string; title: string }[];
  properties: Record<string, unknown>;
  version?: string;
  truncated?: { next_offset?: number; total_chars?: number };
  incoming_neighbors?: { id: string; title: string }[];
  outgoing_neighbors?: { id: string; title: string }[];
  entities?: { entity_id: number; name: string; entity_type: string }[];
}

export interface FoundPage {
  doc_id: string;
  filepath: string;
  title: string;
  sections: { heading: string | null; content: string; score: number }[];
  score: number;
  score_breakdown: { vector_similarity: number; graph_proximity: number; fulltext: number };
  relevance_reason: string;
  staleness: Freshness;
}

export interface Observation {
  observation_id: number;
  observation_content: string;
  created_at: string;
  updated_at: string;
  superseded_by?: number;
  valid_until?: string;
}

export interface Relation {
  relation_id: number;
  from_entity_id: number;
  from_entity_name?: string;
  to_entity_id: number;
  to_entity_name?: string;
  relation_type: string;
}

export interface Entity {
  entity_id: number;
  name: string;
  entity_type: string;
  description: string | null;
  aliases: string | null;
  memory_observations_count: number;
  created_at: string;
  updated_at: string;
  observations: Observation[];
  observations_total?: number;
  /** What its texts link to, each with the text of the link. */
  notes?: { id: string; title: string; link: string }[];
  relations_from: Relation[];
  relations_to: Relation[];
}

export interface Merge {
  entity_a: { entity_id: number; name: string; entity_type: string };
  entity_b: { entity_id: number; name: string; entity_type: string };
  cosine_distance: number;
  recommendation: string;
}

/** One line of the live trail. */
export interface Trace {
  at: number;
  who: string;
  kind: "call" | "note" | "memory";
  tool?: string;
  object?: string;
  text: string;
  /** Of a change to memory: the entity, and the change's name for undo_change. */
  entity?: number;
  change?: number;
  ms?: number;
  failed?: boolean;
  writes?: boolean;
}
