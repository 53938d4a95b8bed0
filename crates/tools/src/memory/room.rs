//! How much of what is known fits into one answer. An agent pays for every character, and clients refuse answers that are
//! much longer.

use crate::answer_size::json_chars;

/// Characters of the observations of one entity where a limit was asked for: room for the longest that a tool makes.
pub(super) const OBSERVATIONS: usize = 50_000;

/// The least that an entity of many has for its observations.
const LEAST: usize = 300;

/// What stands around an observation: its number, its times, the names of its fields.
const FRAME: usize = 140;

/// Characters that an observation takes up.
pub(super) fn cost(text: &str) -> usize {
    json_chars(&text) + FRAME
}

/// How many of these observations, by what they cost, fit from the last one back. The last one is shown in any case.
pub(super) fn newest_that_fit(costs: &[usize], room: usize) -> usize {
    let mut left = room;
    let fits = |cost: &&usize| {
        let fits = **cost <= left;
        left = left.saturating_sub(**cost);
        fits
    };
    costs.iter().rev().take_while(fits).count().max(1).min(costs.len())
}

/// Which of these observations, by what they cost, are shown: of those that fit a query, best first, as many as there is room
/// for, then the newest until the room is full, oldest of them first. The first of all is shown in any case.
pub(super) fn fitting_then_newest(costs: &[usize], fitting: &[usize], room: usize) -> Vec<usize> {
    let (mut left, mut is_first) = (room, true);
    let mut has_room = |place: &usize| {
        let has_room = costs[*place] <= left || is_first;
        left = if has_room { left.saturating_sub(costs[*place]) } else { left };
        is_first = false;
        has_room
    };
    let mut shown: Vec<usize> = fitting.iter().copied().filter(&mut has_room).collect();
    let mut is_fitting = vec![false; costs.len()];
    fitting.iter().for_each(|place| is_fitting[*place] = true);
    let newest = (0..costs.len()).rev().filter(|place| !is_fitting[*place]).take_while(has_room);
    let newest: Vec<usize> = newest.collect();
    shown.extend(newest.into_iter().rev());
    shown
}

/// Shares room out: who wants little gets it, the others get the same each.
pub(super) fn shares(wanted: &[usize], room: usize) -> Vec<usize> {
    let mut smallest_first: Vec<usize> = (0..wanted.len()).collect();
    smallest_first.sort_by_key(|place| wanted[*place]);
    let (mut shares, mut left) = (vec![0; wanted.len()], room);
    for (done, place) in smallest_first.into_iter().enumerate() {
        let equal = left / (wanted.len() - done);
        shares[place] = wanted[place].min(equal.max(LEAST));
        left = left.saturating_sub(shares[place]);
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_taken_until_the_room_is_full() {
        assert_eq!(newest_that_fit(&[5, 5, 5], 15), 3);
        assert_eq!(newest_that_fit(&[5, 5, 5], 14), 2);
        assert_eq!(newest_that_fit(&[1, 9, 5], 10), 1, "no gaps");
        assert_eq!(newest_that_fit(&[5, 99], 10), 1, "one is shown in any case");
        assert_eq!(newest_that_fit(&[], 10), 0);
    }

    #[test]
    fn what_fits_the_query_comes_before_the_newest() {
        assert_eq!(fitting_then_newest(&[5, 5, 5, 5], &[1], 15), [1, 2, 3]);
        assert_eq!(fitting_then_newest(&[5, 5, 5, 5], &[2, 0], 20), [2, 0, 1, 3], "the others in their order");
        assert_eq!(fitting_then_newest(&[5, 5, 9, 5], &[2, 0], 12), [2], "no room is left");
        assert_eq!(fitting_then_newest(&[5, 9, 5, 5], &[2, 1, 0], 12), [2, 0], "a shorter one still finds room");
        assert_eq!(fitting_then_newest(&[99, 5], &[0], 10), [0], "one is shown in any case");
        assert_eq!(fitting_then_newest(&[5, 99], &[], 10), [1]);
        assert_eq!(fitting_then_newest(&[], &[], 10), [0; 0]);
    }

    #[test]
    fn who_wants_little_leaves_room_for_others() {
        assert_eq!(shares(&[10, 20, 30], 100), [10, 20, 30]);
        assert_eq!(shares(&[10_000, 100, 10_000], 5100), [2500, 100, 2500]);
        assert_eq!(shares(&[10_000; 4], 400), [LEAST; 4], "nobody gets next to nothing");
        assert_eq!(shares(&[], 100), [0; 0]);
    }
}
