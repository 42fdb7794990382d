//! Distributions of durations, with a compact form for merging and for charts.

use hdrhistogram::Histogram;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::clock::SECOND;

/// Shortest distinguishable duration, in nanoseconds. `hdrhistogram` rounds it down to a power of two: 64 ns.
const LOWEST: u64 = 100;
/// Longest recordable duration, in nanoseconds: an hour. Longer durations count as an hour.
const HIGHEST: u64 = 3600 * SECOND;
/// Number of significant decimal digits of a recorded duration.
const DIGITS: u8 = 3;
/// A bin of the compact form holds the durations that share the leading 1 and the next `GRID_BITS` bits. A bin's
/// relative width is at most 1/64, so the relative error of its middle is at most 1/128.
const GRID_BITS: u32 = 6;

/// Percentiles printed in the results.
const PERCENTILES: [f64; 7] = [50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99];

/// A histogram of durations in nanoseconds, with their exact sum.
#[derive(Clone, Debug)]
pub struct Distribution {
    histogram: Histogram<u64>,
    sum: u128,
}

impl Default for Distribution {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(LOWEST, HIGHEST, DIGITS).expect("the bounds are constants");
        Self { histogram, sum: 0 }
    }
}

impl Distribution {
    /// Record a duration `count` times.
    #[inline]
    pub fn record(&mut self, nanoseconds: u64, count: u64) {
        self.sum += u128::from(nanoseconds) * u128::from(count);
        if self.histogram.record_n(nanoseconds, count).is_err() {
            self.histogram.saturating_record_n(nanoseconds, count);
        }
    }

    /// Return the number of recorded durations.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Return the compact form: for each bin, its middle in nanoseconds and its count, in ascending order.
    ///
    /// All distributions have the same bins, so the results of several generators can be merged by adding counts.
    /// Quantiles are accurate to 1 %.
    pub fn compact(&self) -> Vec<(u64, u64)> {
        let mut cells: Vec<(u64, u64)> = Vec::new();
        for step in self.histogram.iter_recorded() {
            let cell = grid(self.histogram.lowest_equivalent(step.value_iterated_to()));
            match cells.last_mut() {
                Some((value, count)) if *value == cell => *count += step.count_at_value(),
                _ => cells.push((cell, step.count_at_value())),
            }
        }
        cells
    }

    /// Add the durations of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.sum += other.sum;
        if !other.histogram.is_empty() {
            self.histogram.add(&other.histogram).expect("all have the same bounds");
        }
    }
}

/// Serialize the distribution for the JSON output; an empty distribution becomes null.
impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.histogram.is_empty() {
            return serializer.serialize_none();
        }
        let at = |point: &f64| (point.to_string(), self.histogram.value_at_percentile(*point).into());
        let percentiles: Map<String, Value> = PERCENTILES.iter().map(at).collect();
        let summary = json!({
            "count": self.count(),
            "mean_ns": self.sum as f64 / self.count() as f64,
            "stdev_ns": self.histogram.stdev(),
            "min_ns": self.histogram.min(),
            "max_ns": self.histogram.max(),
            "percentiles_ns": percentiles,
            "distribution_ns": self.compact(),
        });
        summary.serialize(serializer)
    }
}

/// Return the middle of the bin that contains the value. The value's seven leading bits identify the bin.
fn grid(value: u64) -> u64 {
    let digits = u64::BITS - value.leading_zeros();
    let Some(dropped) = digits.checked_sub(GRID_BITS + 1).filter(|&bits| bits > 0) else { return value };
    let low = value >> dropped << dropped;
    low + (1 << (dropped - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn sample(seed: u64, times: usize) -> (Distribution, Vec<u64>) {
        let mut random = Random::new(seed);
        let mut distribution = Distribution::default();
        let values: Vec<u64> = (0..times).map(|_| (50_000.0 * (12.0 * random.unit()).exp()) as u64).collect();
        for &value in &values {
            distribution.record(value, 1);
        }
        (distribution, values)
    }

    fn quantile(cells: &[(u64, u64)], share: f64) -> u64 {
        let total: u64 = cells.iter().map(|(_, count)| count).sum();
        let rank = (share * total as f64).ceil() as u64;
        let mut sums = cells.iter().scan(0, |cumulative, (value, count)| {
            *cumulative += count;
            Some((*cumulative, *value))
        });
        sums.find(|(cumulative, _)| *cumulative >= rank).unwrap().1
    }

    #[test]
    fn compact_form_is_small_and_accurate() {
        let (distribution, mut values) = sample(1, 100_000);
        values.sort_unstable();
        let cells = distribution.compact();
        assert!((900..1200).contains(&cells.len()), "{}", cells.len());
        assert_eq!(cells.iter().map(|(_, count)| count).sum::<u64>(), 100_000);
        for share in [0.001, 0.1, 0.5, 0.9, 0.99, 0.999] {
            let exact = values[(share * 100_000.0) as usize - 1] as f64;
            assert!((quantile(&cells, share) as f64 / exact - 1.0).abs() < 0.01, "{share}");
        }
    }

    #[test]
    fn compact_forms_merge_exactly() {
        let ((mut first, _), (second, _)) = (sample(1, 10_000), sample(2, 20_000));
        let mut merged = std::collections::BTreeMap::new();
        for (value, count) in first.compact().into_iter().chain(second.compact()) {
            *merged.entry(value).or_insert(0) += count;
        }
        first.merge(&second);
        assert_eq!(merged.into_iter().collect::<Vec<_>>(), first.compact());
    }

    #[test]
    fn mean_is_exact_beyond_the_range() {
        let mut distribution = Distribution::default();
        assert_eq!(json!(distribution), Value::Null);
        distribution.record(1_000_003, 2);
        distribution.record(HIGHEST * 3, 1);
        assert_eq!(distribution.count(), 3);
        let mean = json!(distribution)["mean_ns"].as_f64().unwrap();
        assert!((mean - (2_000_006.0 + 3.0 * HIGHEST as f64) / 3.0).abs() < 1.0, "{mean}");
    }
}
