//! What happened in each of the last sixty minutes, for the plots of the explorer: calls, their 95th percentile by tool, files that
//! waited for the index, embedding progress, memory.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

/// Minutes kept.
const MINUTES: usize = 60;

/// Durations kept of each tool in a minute.
const DURATIONS: usize = 64;

const MINUTE_NS: i64 = 60_000_000_000;

/// One number for each of the last sixty minutes, the newest last; 0 for minutes before the server started.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LastHour {
    /// Calls of clients other than the explorer.
    pub calls: Vec<u64>,
    /// The most files that waited for the index.
    pub queue: Vec<usize>,
    /// Passages with a vector.
    pub embedded: Vec<usize>,
    /// Passages.
    pub to_embed: Vec<usize>,
    /// Resident memory of the process in MB.
    pub memory_mb: Vec<u64>,
    /// The 95th percentile in milliseconds by tool, for tools that were called.
    pub p95_ms: BTreeMap<String, Vec<f64>>,
}

/// Values that are read from time to time. A minute without a reading has that of the minute before.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reading {
    /// Passages with a vector.
    pub embedded: usize,
    /// Passages.
    pub to_embed: usize,
    /// Resident memory of the process in MB.
    pub memory_mb: u64,
}

/// Collects the minutes.
#[derive(Default)]
pub(super) struct MinuteLog(VecDeque<Minute>);

#[derive(Default)]
struct Minute {
    /// Since 1970.
    number: i64,
    calls: u64,
    queue: usize,
    reading: Option<Reading>,
    durations: BTreeMap<&'static str, VecDeque<f32>>,
}

impl MinuteLog {
    /// The minute of a time; that of the newest entry if the clock went back.
    fn minute(&mut self, now_ns: i64) -> &mut Minute {
        let number = now_ns.div_euclid(MINUTE_NS);
        if self.0.back().is_none_or(|last| last.number < number) {
            if self.0.len() == MINUTES {
                self.0.pop_front();
            }
            self.0.push_back(Minute { number, ..Minute::default() });
        }
        self.0.back_mut().expect("one was just added")
    }

    /// Adds a call; one of the explorer itself has a duration, and is not counted.
    pub(super) fn called(&mut self, tool: &'static str, ms: f32, is_counted: bool, now_ns: i64) {
        let minute = self.minute(now_ns);
        minute.calls += u64::from(is_counted);
        let durations = minute.durations.entry(tool).or_default();
        if durations.len() == DURATIONS {
            durations.pop_front();
        }
        durations.push_back(ms);
    }

    pub(super) fn queued(&mut self, files: usize, now_ns: i64) {
        let minute = self.minute(now_ns);
        minute.queue = minute.queue.max(files);
    }

    pub(super) fn read(&mut self, reading: Reading, now_ns: i64) {
        self.minute(now_ns).reading = Some(reading);
    }

    pub(super) fn last_hour(&self, now_ns: i64) -> LastHour {
        let newest = now_ns.div_euclid(MINUTE_NS);
        let minutes: BTreeMap<i64, &Minute> = self.0.iter().map(|minute| (minute.number, minute)).collect();
        let mut hour = LastHour::default();
        let mut last = Reading::default();
        for (place, number) in (newest - MINUTES as i64 + 1..=newest).enumerate() {
            let minute = minutes.get(&number);
            last = minute.and_then(|minute| minute.reading).unwrap_or(last);
            hour.calls.push(minute.map_or(0, |minute| minute.calls));
            hour.queue.push(minute.map_or(0, |minute| minute.queue));
            hour.embedded.push(last.embedded);
            hour.to_embed.push(last.to_embed);
            hour.memory_mb.push(last.memory_mb);
            for (tool, durations) in minute.iter().flat_map(|minute| &minute.durations) {
                let row = hour.p95_ms.entry((*tool).to_owned()).or_insert_with(|| vec![0.0; MINUTES]);
                row[place] = percentile(durations, 95);
            }
        }
        hour
    }
}

/// A percentile, rounded to hundredths; 0 of nothing.
pub(super) fn percentile(values: &VecDeque<f32>, part: usize) -> f64 {
    let mut sorted: Vec<f32> = values.iter().copied().collect();
    sorted.sort_by(f32::total_cmp);
    let place = (sorted.len() * part / 100).min(sorted.len().saturating_sub(1));
    sorted.get(place).map_or(0.0, |value| (f64::from(*value) * 100.0).round() / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: i64) -> i64 {
        minute * MINUTE_NS + 1
    }

    #[test]
    fn each_minute_has_its_calls_and_readings_stay_until_the_next() {
        let mut log = MinuteLog::default();
        log.called("search", 5.0, true, at(100));
        log.called("search", 9.0, true, at(100));
        log.read(Reading { embedded: 1, to_embed: 4, memory_mb: 80 }, at(101));
        log.called("get_node", 1.0, false, at(102));
        log.queued(7, at(102));
        log.queued(3, at(102));
        let hour = log.last_hour(at(103));
        assert_eq!(hour.calls[56..], [2, 0, 0, 0], "the explorer's own calls are not counted");
        assert_eq!(hour.queue[56..], [0, 0, 7, 0]);
        assert_eq!((&hour.embedded[55..], &hour.memory_mb[58..]), (&[0, 0, 1, 1, 1][..], &[80, 80][..]));
        assert_eq!(hour.p95_ms["search"][56], 9.0);
        assert_eq!(hour.p95_ms["get_node"][58], 1.0);
        let lengths = [hour.calls.len(), hour.queue.len(), hour.embedded.len(), hour.p95_ms["search"].len()];
        assert_eq!(lengths, [MINUTES; 4]);
    }

    #[test]
    fn what_is_older_than_an_hour_is_dropped_and_memory_is_bounded() {
        let mut log = MinuteLog::default();
        for minute in 0..200 {
            for _ in 0..DURATIONS + 10 {
                log.called("search", minute as f32, true, at(minute));
            }
        }
        assert_eq!(log.0.len(), MINUTES);
        assert!(log.0.iter().all(|minute| minute.durations["search"].len() == DURATIONS));
        assert_eq!(log.last_hour(at(500)).calls, vec![0; MINUTES]);
        log.called("search", 1.0, true, at(10));
        assert_eq!(log.0.back().unwrap().number, 199, "a clock that went back adds to the newest minute");
    }
}
