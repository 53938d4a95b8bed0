//! Which observations fit into one answer.

use crate::answer_size::json_chars;

/// Characters of the observations of one entity if the client passed a limit: enough for the longest observation.
pub(super) const OBSERVATIONS: usize = 50_000;

/// Characters of observations for each of many entities, at least.
const LEAST: usize = 300;

/// Characters of the other fields of an observation.
const FRAME: usize = 140;

/// Characters of an observation in an answer.
pub(super) fn cost(text: &str) -> usize {
    json_chars(&text) + FRAME
}

/// How many of the newest (last) observations of these costs fit. The newest is always shown.
pub(super) fn newest_that_fit(costs: &[usize], room: usize) -> usize {
    let mut left = room;
    let fits = |cost: &&usize| {
        let fits = **cost <= left;
        left = left.saturating_sub(**cost);
        fits
    };
    costs.iter().rev().take_while(fits).count().max(1).min(costs.len())
}

/// The observations of these costs to show: first the matches of a query, best first, then the newest, oldest first, as far
/// as they fit. The first is always shown.
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

/// Divides space: small requests are met, the others share the rest equally.
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
    fn newest_items_fill_the_space() {
        assert_eq!(newest_that_fit(&[5, 5, 5], 15), 3);
        assert_eq!(newest_that_fit(&[5, 5, 5], 14), 2);
        assert_eq!(newest_that_fit(&[1, 9, 5], 10), 1, "no gaps");
        assert_eq!(newest_that_fit(&[5, 99], 10), 1, "one is shown in any case");
        assert_eq!(newest_that_fit(&[], 10), 0);
    }

    #[test]
    fn matches_come_before_the_newest() {
        assert_eq!(fitting_then_newest(&[5, 5, 5, 5], &[1], 15), [1, 2, 3]);
        assert_eq!(fitting_then_newest(&[5, 5, 5, 5], &[2, 0], 20), [2, 0, 1, 3], "the others in their order");
        assert_eq!(fitting_then_newest(&[5, 5, 9, 5], &[2, 0], 12), [2], "no room is left");
        assert_eq!(fitting_then_newest(&[5, 9, 5, 5], &[2, 1, 0], 12), [2, 0], "a shorter one still finds room");
        assert_eq!(fitting_then_newest(&[99, 5], &[0], 10), [0], "one is shown in any case");
        assert_eq!(fitting_then_newest(&[5, 99], &[], 10), [1]);
        assert_eq!(fitting_then_newest(&[], &[], 10), [0; 0]);
    }

    #[test]
    fn small_requests_leave_space_for_others() {
        assert_eq!(shares(&[10, 20, 30], 100), [10, 20, 30]);
        assert_eq!(shares(&[10_000, 100, 10_000], 5100), [2500, 100, 2500]);
        assert_eq!(shares(&[10_000; 4], 400), [LEAST; 4], "each gets at least the minimum");
        assert_eq!(shares(&[], 100), [0; 0]);
    }
}
