//! A number for `/metrics`.

/// One value of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    pub name: &'static str,
    /// A description, in a sentence.
    pub what: &'static str,
    pub kind: MetricKind,
    pub value: f64,
}

/// How a value behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Goes up and down.
    Gauge,
    /// Grows from the start of the server.
    Counter,
}

impl Metric {
    pub fn gauge(name: &'static str, what: &'static str, value: f64) -> Self {
        Self { name, what, kind: MetricKind::Gauge, value }
    }

    pub fn counter(name: &'static str, what: &'static str, value: f64) -> Self {
        Self { name, what, kind: MetricKind::Counter, value }
    }
}

impl MetricKind {
    /// Prometheus' word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
        }
    }
}
