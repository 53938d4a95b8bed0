// Two texts side by side; on a phone one below the other, with marks as in a diff.
import type { Row } from "../line_diff";

export function SideBySide({ rows, left, right }: { rows: Row[]; left: string; right: string }) {
  return (
    <div class="side-by-side" tabIndex={0} role="region" aria-label={`${left} and ${right}`}>
      <div class="heads">
        <span>{left}</span>
        <span>{right}</span>
      </div>
      {rows.map((row, at) =>
        row.kind === "gap" ? (
          <div key={at} class="gap" aria-hidden="true">
            ⋯
          </div>
        ) : (
          <div key={at} class={`diff-row ${row.kind}`}>
            <span class={row.kind === "changed" && row.left !== null ? "removed" : ""}>{row.left ?? ""}</span>
            <span class={row.kind === "changed" && row.right !== null ? "added" : ""}>{row.right ?? ""}</span>
          </div>
        ),
      )}
    </div>
  );
}
