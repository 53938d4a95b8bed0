//! The coarse rows of one space in memory, and the scan over all of them.
//!
//! Rows are dense: the last row replaces a removed one. They lie in blocks, so that growing copies nothing.

use quipu_core::dot_products;
use quipu_core::ports::{Calibration, Grade};

use super::fixed_point::{FixedPoint, SUMS, coarse_error};

const BLOCK_ROWS: usize = 1024;

/// Rows per thread: starting a thread takes a tenth of the time of scanning them.
const THREAD_ROWS: usize = 32 * BLOCK_ROWS;

/// Beyond this the bandwidth of memory is the limit.
const MAX_THREADS: usize = 8;

/// Coarse rows, each with the slot of its text.
pub(super) struct Matrix {
    dimensions: usize,
    blocks: Vec<Box<[i8]>>,
    scales: Vec<f32>,
    grades: Vec<Grade>,
    slots: Vec<u32>,
}

/// A row that may be among the closest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CandidateRow {
    /// An upper bound of its similarity, wrong for one row in a million.
    pub(super) most: f32,
    pub(super) slot: u32,
}

/// The result of a scan.
pub(super) struct ScanResult {
    /// By `most`, highest first.
    pub(super) rows: Vec<CandidateRow>,
    /// Whether every admitted row is among them.
    pub(super) are_all: bool,
}

impl Matrix {
    pub(super) fn new(dimensions: usize) -> Self {
        Self { dimensions, blocks: Vec::new(), scales: Vec::new(), grades: Vec::new(), slots: Vec::new() }
    }

    pub(super) fn dimensions(&self) -> usize {
        self.dimensions
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Adds a row of the matrix's dimensions and returns its number.
    pub(super) fn push(&mut self, slot: u32, grade: Grade, scale: f32, coarse: &[i8]) -> u32 {
        let row = self.len();
        if row == self.blocks.len() * BLOCK_ROWS {
            self.blocks.push(vec![0; BLOCK_ROWS * self.dimensions].into_boxed_slice());
        }
        self.slots.push(slot);
        self.scales.push(0.0);
        self.grades.push(grade);
        let row = u32::try_from(row).expect("there are as many rows as slots at most");
        self.replace(row, grade, scale, coarse);
        row
    }

    pub(super) fn replace(&mut self, row: u32, grade: Grade, scale: f32, coarse: &[i8]) {
        let row = row as usize;
        (self.scales[row], self.grades[row]) = (scale, grade);
        self.row_mut(row).copy_from_slice(coarse);
    }

    /// Removes a row. The last row moves to its place; returns the slot of the moved row.
    pub(super) fn remove(&mut self, row: u32) -> Option<u32> {
        let row = row as usize;
        let last = self.len() - 1;
        if row != last {
            let moved = self.row_mut(last).to_vec();
            self.row_mut(row).copy_from_slice(&moved);
        }
        self.scales.swap_remove(row);
        self.grades.swap_remove(row);
        self.slots.swap_remove(row);
        self.blocks.truncate(self.len().div_ceil(BLOCK_ROWS));
        self.slots.get(row).copied()
    }

    /// The `keep` rows that may be the closest among those whose slot is admitted. `admits` is not called for rows that
    /// are too far off anyway.
    pub(super) fn scan(
        &self,
        query: &FixedPoint,
        calibration: Calibration,
        keep: usize,
        admits: &(impl Fn(u32) -> bool + Sync),
    ) -> ScanResult {
        let scan = Scan { matrix: self, query, calibration };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.len().div_ceil(THREAD_ROWS).clamp(1, cores.min(MAX_THREADS));
        let blocks_each = self.blocks.len().div_ceil(threads).max(1);
        // Not rayon's threads: embedding in the background keeps those busy for seconds.
        let shares_found: Vec<TopRows> = std::thread::scope(|scope| {
            let shares = (0..self.blocks.len()).step_by(blocks_each);
            let mut shares = shares.map(|start| start..(start + blocks_each).min(self.blocks.len()));
            let own = shares.next().unwrap_or(0..0);
            let others: Vec<_> = shares
                .map(|blocks| {
                    let scan = &scan;
                    scope.spawn(move || scan.share(blocks, keep, admits))
                })
                .collect();
            let own = scan.share(own, keep, admits);
            let others = others.into_iter().map(|thread| match thread.join() {
                Ok(top) => top,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            [own].into_iter().chain(others).collect()
        });
        TopRows::merge(shares_found, keep)
    }

    /// The cosine of a query of length one with a row, as the coarse numbers have it, and its upper bound.
    pub(super) fn cosine(&self, row: u32, query: &[f32]) -> (f32, f32) {
        let row = row as usize;
        let (start, scale) = (row % BLOCK_ROWS * self.dimensions, self.scales[row]);
        let numbers = &self.blocks[row / BLOCK_ROWS][start..start + self.dimensions];
        // Parallel sums, as in [`super::fixed_point::cosine`].
        let mut sums = [0_f32; SUMS];
        for (numbers, query) in numbers.chunks(SUMS).zip(query.chunks(SUMS)) {
            for ((sum, number), query) in sums.iter_mut().zip(numbers).zip(query) {
                *sum += f32::from(*number) * query;
            }
        }
        let nearly = (sums.iter().sum::<f32>() * scale).clamp(-1.0, 1.0);
        (nearly, nearly + coarse_error(0.0, scale))
    }

    /// How exact a row is.
    pub(super) fn grade(&self, row: u32) -> Grade {
        self.grades[row as usize]
    }

    fn row_mut(&mut self, row: usize) -> &mut [i8] {
        let start = row % BLOCK_ROWS * self.dimensions;
        &mut self.blocks[row / BLOCK_ROWS][start..start + self.dimensions]
    }
}

/// One scan, shared by its threads.
struct Scan<'a> {
    matrix: &'a Matrix,
    query: &'a FixedPoint,
    calibration: Calibration,
}

impl Scan<'_> {
    fn share(&self, blocks: std::ops::Range<usize>, keep: usize, admits: &impl Fn(u32) -> bool) -> TopRows {
        let mut top = TopRows { keep, floor: f32::NEG_INFINITY, rows: Vec::new(), has_dropped: false };
        let mut products = [0; BLOCK_ROWS];
        for block in blocks {
            let first = block * BLOCK_ROWS;
            let count = (self.matrix.len() - first).min(BLOCK_ROWS);
            let products = &mut products[..count];
            let numbers = &self.matrix.blocks[block][..count * self.matrix.dimensions];
            dot_products(&self.query.coarse, numbers, products);
            let rows = self.matrix.scales[first..].iter().zip(&self.matrix.grades[first..]);
            for ((product, (scale, grade)), slot) in products.iter().zip(rows).zip(&self.matrix.slots[first..]) {
                let about = *product as f32 * (self.query.scale * scale);
                let most = about + coarse_error(self.query.scale, *scale);
                top.offer(self.calibration.apply(*grade, most), *slot, admits);
            }
        }
        top
    }
}

/// The best rows so far. It holds up to twice `keep` rows, and is cut to `keep` when full: each cut partitions all rows.
struct TopRows {
    keep: usize,
    /// A row at or below this is not among the wanted ones.
    floor: f32,
    rows: Vec<CandidateRow>,
    has_dropped: bool,
}

impl TopRows {
    fn offer(&mut self, most: f32, slot: u32, admits: &impl Fn(u32) -> bool) {
        if most <= self.floor {
            self.has_dropped = true;
        } else if admits(slot) {
            self.rows.push(CandidateRow { most, slot });
            if self.rows.len() >= 2 * self.keep {
                self.cut();
            }
        }
    }

    fn cut(&mut self) {
        if self.rows.len() > self.keep {
            let (_, last, _) = self.rows.select_nth_unstable_by(self.keep - 1, by_most);
            self.floor = last.most;
            self.rows.truncate(self.keep);
            self.has_dropped = true;
        }
    }

    fn merge(shares_found: Vec<Self>, keep: usize) -> ScanResult {
        let has_dropped = shares_found.iter().any(|top| top.has_dropped);
        let mut all = Self { keep, floor: 0.0, rows: Vec::new(), has_dropped };
        all.rows.extend(shares_found.into_iter().flat_map(|top| top.rows));
        all.cut();
        all.rows.sort_unstable_by(by_most);
        ScanResult { rows: all.rows, are_all: !all.has_dropped }
    }
}

fn by_most(a: &CandidateRow, b: &CandidateRow) -> std::cmp::Ordering {
    b.most.total_cmp(&a.most).then(a.slot.cmp(&b.slot))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: usize) -> FixedPoint {
        let angle = number as f32 * 0.01;
        FixedPoint::new(&[angle.cos(), angle.sin(), 0.0]).unwrap()
    }

    fn slots(candidates: &ScanResult) -> Vec<u32> {
        candidates.rows.iter().map(|row| row.slot).collect()
    }

    #[test]
    fn last_row_replaces_a_removed_one() {
        let mut matrix = Matrix::new(3);
        for slot in 0..3 {
            let FixedPoint { scale, coarse, .. } = row(slot as usize * 50);
            assert_eq!(matrix.push(slot, Grade::FULL, scale, &coarse), slot);
        }
        assert_eq!(matrix.remove(0), Some(2));
        assert_eq!(matrix.remove(1), None, "it was the last");
        assert_eq!(slots(&matrix.scan(&row(0), Calibration::NONE, 10, &|_| true)), [2]);
        assert_eq!(matrix.remove(0), None);
        assert_eq!(slots(&matrix.scan(&row(0), Calibration::NONE, 10, &|_| true)), [0; 0]);
    }

    #[test]
    fn scan_over_many_blocks_and_threads_finds_the_closest_admitted_rows() {
        let mut matrix = Matrix::new(3);
        let count = 2 * THREAD_ROWS + 17;
        for number in 0..count {
            let FixedPoint { scale, coarse, .. } = row(if number % 1000 == 7 { number / 1000 } else { 200 });
            matrix.push(number as u32, Grade::FULL, scale, &coarse);
        }
        let found = matrix.scan(&row(0), Calibration::NONE, 70, &|slot| slot != 7);
        let mut closest: Vec<u32> = slots(&found)[..count / 1000].to_vec();
        closest.sort_unstable();
        assert_eq!(closest, (1..=count as u32 / 1000).map(|place| place * 1000 + 7).collect::<Vec<_>>());
        assert_eq!((found.rows.len(), found.are_all), (70, false));
        let rare = matrix.scan(&row(0), Calibration::NONE, 70, &|slot| slot == 3 || slot as usize == count - 1);
        assert_eq!((slots(&rare), rare.are_all), (vec![3, count as u32 - 1], true));
    }
}
