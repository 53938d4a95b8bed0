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

/** Scaled into the picture. Half by the place, half by the order of places: one node far out does not press the others together. */
function fitted(points: [number, number][], width: number, height: number): [number, number][] {
  const spread = (at: 0 | 1, room: number) => {
    const values = points.map((point) => point[at]);
    const [least, most] = [Math.min(...values), Math.max(...values)];
    const rank = new Map([...values.keys()].sort((a, b) => values[a]! - values[b]!).map((node, place) => [node, place / Math.max(1, values.length - 1)]));
    return values.map((value, node) => (most > least ? ((value - least) / (most - least) / 2 + rank.get(node)! / 2) * room : room / 2));
  };
  const [across, down] = [spread(0, width - 2 * MARGIN), spread(1, height - 2 * MARGIN)];
  return apart(points.map((_, node) => [MARGIN + across[node]!, MARGIN + down[node]!]), width, height);
}

/** Moves nodes that touch away from each other. */
function apart(points: [number, number][], width: number, height: number): [number, number][] {
  const least = Math.min(34, 0.8 * Math.sqrt((width * height) / points.length));
  for (let step = 0; step < 40; step++) {
    for (let a = 0; a < points.length; a++) {
      for (let b = a + 1; b < points.length; b++) {
        const [p, q] = [points[a]!, points[b]!];
        const [dx, dy] = [q[0] - p[0], q[1] - p[1]];
        const distance = Math.hypot(dx, dy) || 1;
        if (distance >= least) continue;
        const push = (least - distance) / 2 / distance;
        p[0] -= dx * push;
        p[1] -= dy * push;
        q[0] += dx * push;
        q[1] += dy * push;
      }
    }
    for (const point of points) {
      point[0] = Math.min(width - MARGIN, Math.max(MARGIN, point[0]));
      point[1] = Math.min(height - MARGIN, Math.max(MARGIN, point[1]));
    }
  }
  return points;
}
