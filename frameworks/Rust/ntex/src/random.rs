//! Random ids and numbers, and parsing of integer parameters.

use std::num::IntErrorKind;

const ROWS: i32 = 10_000;

/// Returns a uniformly distributed integer from 1 to 10000, for use as an id or a random number.
pub fn row() -> i32 {
    fastrand::i32(1..=ROWS)
}

pub fn rows(count: usize) -> Vec<i32> {
    (0..count).map(|_| row()).collect()
}

/// Returns distinct ids in ascending order. Concurrent updates thus lock rows in the same order and cannot deadlock.
pub fn distinct_rows(count: usize) -> Vec<i32> {
    let mut ids = Vec::with_capacity(count);
    while ids.len() < count {
        while ids.len() < count {
            ids.push(row());
        }
        ids.sort_unstable();
        ids.dedup();
    }
    ids
}

/// Returns a random number from 1 to 10000 that differs from `old`, so that every update changes the row.
pub fn other_number(old: i32) -> i32 {
    let drawn = fastrand::i32(1..ROWS);
    if drawn < old { drawn } else { drawn + 1 }
}

/// Returns a parameter as an integer clamped to `low..=high`, or `fallback` if it is missing or not an integer.
pub fn clamped(parameter: Option<&str>, low: i64, high: i64, fallback: i64) -> i64 {
    let Some(text) = parameter.filter(|text| !text.starts_with('+')) else {
        return fallback;
    };
    match text.parse::<i64>() {
        Ok(number) => number.clamp(low, high),
        Err(error) => match error.kind() {
            IntErrorKind::PosOverflow => high,
            IntErrorKind::NegOverflow => low,
            _ => fallback,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_clamped_and_other_parameters_become_the_fallback() {
        let seen = ["", "foo", "1.5", "+5", "-1", "0", "20", "501", "99999999999999999999"]
            .map(|text| clamped(Some(text), 1, 500, 1));
        assert_eq!(seen, [1, 1, 1, 1, 1, 1, 20, 500, 500]);
        assert_eq!(clamped(None, 1, 500, 1), 1);
    }

    #[test]
    fn distinct_rows_are_ascending() {
        let ids = distinct_rows(500);
        assert_eq!(ids.len(), 500);
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
