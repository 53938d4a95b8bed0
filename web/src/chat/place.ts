// Positions for a small graph: every pair of nodes repels, links attract. The same on every run.

const STEPS = 160;
const MARGIN = 24;

export function place(size: number, edges: [number, number][], width: number, height: number): [number, number][] {
  // A spiral: no two nodes at one point, and neighbours in the answer near each other.
  const points = Array.from({ length: size }, (_, n): [number, number] => {
    const [angle, radius] = [n * 2.4, Math.sqrt(n + 0.5)];
    return [radius * Math.cos(angle), radius * Math.sin(angle)];
  });
  for (let step = 0; step < STEPS; step++) {
    const heat = 0.6 * (1 - step / STEPS);
    const force = points.map((): [number, number] => [0, 0]);
    for (let a = 0; a < size; a++) {
      for (let b = a + 1; b < size; b++) {
        const [dx, dy] = [points[a]![0] - points[b]![0], points[a]![1] - points[b]![1]];
        const push = 2 / (dx * dx + dy * dy + 0.01);
        force[a]![0] += dx * push;
        force[a]![1] += dy * push;
        force[b]![0] -= dx * push;
        force[b]![1] -= dy * push;
      }
    }
    for (const [a, b] of edges) {
      const [dx, dy] = [points[b]![0] - points[a]![0], points[b]![1] - points[a]![1]];
      force[a]![0] += dx * 0.3;
      force[a]![1] += dy * 0.3;
      force[b]![0] -= dx * 0.3;
      force[b]![1] -= dy * 0.3;
    }
    points.forEach((point, n) => {
      const [fx, fy] = [force[n]![0] - point[0] * 0.05, force[n]![1] - point[1] * 0.05];
      const length = Math.hypot(fx, fy) || 1;
      const reach = Math.min(length, heat * 2) / length;
      point[0] += fx * reach;
      point[1] += fy * reach;
    });
  }
  return fitted(points, width, height);
}

/** Scaled into the picture. */
function fitted(points: [number, number][], width: number, height: number): [number, number][] {
  const range = (at: 0 | 1) => {
    const values = points.map((point) => point[at]);
    return [Math.min(...values), Math.max(...values)] as const;
  };
  const [[left, right], [top, bottom]] = [range(0), range(1)];
  const [across, down] = [width - 2 * MARGIN, height - 2 * MARGIN];
  return points.map(([x, y]) => [
    MARGIN + (right > left ? ((x - left) / (right - left)) * across : across / 2),
    MARGIN + (bottom > top ? ((y - top) / (bottom - top)) * down : down / 2),
  ]);
}
