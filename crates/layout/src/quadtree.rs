//! Barnes and Hut's quadtree: far away, many nodes count as one.

use crate::Point;

/// Deeper, nodes on one spot are counted together.
const MAX_DEPTH: u32 = 24;

/// Cells in one array; children of a cell stand one behind the other.
pub(crate) struct Quadtree {
    cells: Vec<QuadCell>,
}

#[derive(Clone, Copy)]
struct QuadCell {
    centre: Point,
    half: f32,
    /// The mass of all nodes below.
    mass: f32,
    middle: Point,
    /// Index of the first of four children; 0 for none, since the root is no child.
    children: u32,
}

impl Quadtree {
    pub(crate) fn new(positions: &[Point], masses: &[f32]) -> Self {
        let (low, high) = bounds(positions);
        let half = ((high.x - low.x).max(high.y - low.y) / 2.0).max(1.0) * 1.01;
        let centre = Point { x: f32::midpoint(low.x, high.x), y: f32::midpoint(low.y, high.y) };
        let mut cells = Vec::with_capacity(positions.len() * 2);
        cells.push(QuadCell { centre, half, mass: 0.0, middle: centre, children: 0 });
        let mut tree = Self { cells };
        for (point, mass) in positions.iter().zip(masses) {
            tree.insert(*point, *mass);
        }
        tree
    }

    fn insert(&mut self, point: Point, mass: f32) {
        let mut at = 0;
        for depth in 0.. {
            let cell = self.cells[at];
            let is_empty = cell.mass == 0.0;
            let total = cell.mass + mass;
            let share = mass / total;
            let middle = Point {
                x: cell.middle.x + (point.x - cell.middle.x) * share,
                y: cell.middle.y + (point.y - cell.middle.y) * share,
            };
            let middle = if is_empty { point } else { middle };
            self.cells[at].mass = total;
            self.cells[at].middle = middle;
            if is_empty || depth == MAX_DEPTH {
                return;
            }
            if cell.children == 0 {
                self.split(at, cell);
            }
            at = self.child(at, point);
        }
    }

    /// Gives a cell children, and the node that it held to one of them.
    fn split(&mut self, at: usize, cell: QuadCell) {
        self.cells[at].children = self.cells.len() as u32;
        let half = cell.half / 2.0;
        for (dx, dy) in [(-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0), (1.0, 1.0)] {
            let centre = Point { x: cell.centre.x + dx * half, y: cell.centre.y + dy * half };
            self.cells.push(QuadCell { centre, half, mass: 0.0, middle: centre, children: 0 });
        }
        let child = self.child(at, cell.middle);
        self.cells[child].mass = cell.mass;
        self.cells[child].middle = cell.middle;
    }

    fn child(&self, at: usize, point: Point) -> usize {
        let cell = &self.cells[at];
        let right = usize::from(point.x > cell.centre.x);
        let upper = usize::from(point.y > cell.centre.y);
        cell.children as usize + right + 2 * upper
    }

    /// Calls `visit` with the distance vector from a point to each group of nodes, its square, and the group's mass. A group is taken
    /// as one where its width is below `theta` of its distance.
    pub(crate) fn for_each_group(&self, from: Point, theta: f32, mut visit: impl FnMut(f32, f32, f32, f32)) {
        let mut stack = [0_u32; 4 * MAX_DEPTH as usize + 4];
        let mut height = 1;
        while height > 0 {
            height -= 1;
            let cell = &self.cells[stack[height] as usize];
            if cell.mass == 0.0 {
                continue;
            }
            let (dx, dy) = (from.x - cell.middle.x, from.y - cell.middle.y);
            let square = dx * dx + dy * dy;
            let width = 2.0 * cell.half;
            if cell.children == 0 || width * width < theta * theta * square {
                if square > 0.0 {
                    visit(dx, dy, square, cell.mass);
                }
                continue;
            }
            for child in 0..4 {
                stack[height] = cell.children + child;
                height += 1;
            }
        }
    }
}

pub(crate) fn bounds(positions: &[Point]) -> (Point, Point) {
    let start = positions.first().copied().unwrap_or_default();
    positions.iter().fold((start, start), |(low, high), point| {
        (
            Point { x: low.x.min(point.x), y: low.y.min(point.y) },
            Point { x: high.x.max(point.x), y: high.y.max(point.y) },
        )
    })
}
