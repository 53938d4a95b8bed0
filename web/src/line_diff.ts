// Lines of two texts side by side.

export interface Row {
  left: string | null;
  right: string | null;
  kind: "same" | "changed" | "gap";
}

/** Above this many pairs of lines the middle is shown as replaced as a whole. */
const MAX_PAIRS = 4_000_000;

/** What two texts share, line by line. Where nothing is shared, lines stand beside each other in their order. */
export function lineDiff(before: string, after: string): Row[] {
  const [a, b] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let [endA, endB] = [a.length, b.length];
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) {
    endA--;
    endB--;
  }
  const rows: Row[] = a.slice(0, start).map(same);
  const [midA, midB] = [a.slice(start, endA), b.slice(start, endB)];
  let removed: string[] = [];
  let added: string[] = [];
  const flush = () => {
    for (const row of beside(removed, added)) rows.push(row);
    [removed, added] = [[], []];
  };
  if (midA.length * midB.length > MAX_PAIRS) {
    [removed, added] = [midA, midB];
  } else {
    const longest = commonLengths(midA, midB);
    const width = midB.length + 1;
    for (let i = 0, j = 0; i < midA.length || j < midB.length; ) {
      if (i < midA.length && j < midB.length && midA[i] === midB[j]) {
        flush();
        rows.push(same(midA[i]!));
        i++;
        j++;
      } else if (j >= midB.length || (i < midA.length && longest[(i + 1) * width + j]! >= longest[i * width + j + 1]!)) removed.push(midA[i++]!);
      else added.push(midB[j++]!);
    }
  }
  flush();
  return [...rows, ...a.slice(endA).map(same)];
}

/** How many lines the rests of two lists share, from every pair of places. */
function commonLengths(a: string[], b: string[]): Uint32Array {
  const width = b.length + 1;
  const longest = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      longest[i * width + j] = a[i] === b[j] ? longest[(i + 1) * width + j + 1]! + 1 : Math.max(longest[(i + 1) * width + j]!, longest[i * width + j + 1]!);
    }
  }
  return longest;
}

const same = (line: string): Row => ({ left: line, right: line, kind: "same" });

function beside(removed: string[], added: string[]): Row[] {
  return Array.from({ length: Math.max(removed.length, added.length) }, (_, at) => ({
    left: removed[at] ?? null,
    right: added[at] ?? null,
    kind: "changed" as const,
  }));
}

/** The rows of a unified diff, as the tools give it. */
export function unifiedRows(diff: string): Row[] {
  const rows: Row[] = [];
  let removed: string[] = [];
  let added: string[] = [];
  const flush = () => {
    for (const row of beside(removed, added)) rows.push(row);
    [removed, added] = [[], []];
  };
  // The names of the two versions stand above the first hunk.
  const start = diff.startsWith("--- ") ? diff.indexOf("@@") : 0;
  for (const line of diff.slice(Math.max(0, start)).replace(/\n$/, "").split("\n")) {
    if (line.startsWith("\\")) continue;
    if (line.startsWith("-")) {
      if (added.length) flush();
      removed.push(line.slice(1));
    } else if (line.startsWith("+")) added.push(line.slice(1));
    else {
      flush();
      if (line.startsWith("@@")) rows.push({ left: null, right: null, kind: "gap" });
      else rows.push(same(line.slice(1)));
    }
  }
  flush();
  return rows[0]?.kind === "gap" ? rows.slice(1) : rows;
}

/** Without long stretches that are equal: some lines around each change stay. */
export function withoutEqual(rows: Row[], around = 3): Row[] {
  const near = new Uint8Array(rows.length);
  rows.forEach((row, at) => {
    if (row.kind === "changed") near.fill(1, Math.max(0, at - around), at + around + 1);
  });
  const kept: Row[] = [];
  rows.forEach((row, at) => {
    if (near[at]) kept.push(row);
    else if (at && near[at - 1]) kept.push({ left: null, right: null, kind: "gap" });
  });
  return kept;
}
