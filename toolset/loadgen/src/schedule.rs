//! Send times of an open loop: uniform or Poisson arrivals, reproducible by seed.

use crate::random::Random;

/// Distribution of the gaps between requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ArrivalProcess {
    /// Equal gaps.
    Uniform,
    /// Exponential gaps, as produced by many independent users.
    Poisson,
}

/// An endless, ascending sequence of a worker's intended send times.
#[derive(Clone, Debug)]
pub struct Schedule {
    process: ArrivalProcess,
    start: u64,
    gap: f64, // mean gap between this worker's requests, in nanoseconds
    drawn: u64,
    offset: f64, // most recently drawn send time, in nanoseconds since the start
    phase: f64,
    random: Random,
}

impl Schedule {
    /// Create a worker's schedule. All workers together send `rate` requests per second.
    ///
    /// `start` is in nanoseconds. With uniform gaps, the combined requests of all workers are also evenly spaced.
    pub fn new(process: ArrivalProcess, rate: f64, start: u64, worker: usize, workers: usize, seed: u64) -> Self {
        Self {
            process,
            start,
            gap: 1e9 * workers as f64 / rate,
            drawn: 0,
            offset: 0.0,
            phase: worker as f64 / workers as f64,
            random: Random::new(seed ^ (worker as u64 + 1).wrapping_mul(0xd6e8_feb8_6659_fd93)),
        }
    }

    /// Return the next intended send time, in nanoseconds.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.offset = match self.process {
            ArrivalProcess::Uniform => (self.drawn as f64 + self.phase) * self.gap, // rounding errors do not accumulate
            ArrivalProcess::Poisson => self.offset - (1.0 - self.random.unit()).ln() * self.gap,
        };
        self.drawn += 1;
        self.start + self.offset as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_arrivals_are_evenly_spaced_without_drift() {
        let mut due: Vec<u64> = (0..4)
            .flat_map(|worker| {
                let mut schedule = Schedule::new(ArrivalProcess::Uniform, 1000.0, 5, worker, 4, 1);
                (0..250).map(move |_| schedule.draw()).collect::<Vec<_>>()
            })
            .collect();
        due.sort_unstable();
        let expected: Vec<u64> = (0..1000).map(|i| 5 + i * 1_000_000).collect();
        assert_eq!(due, expected);
        let mut schedule = Schedule::new(ArrivalProcess::Uniform, 30_000.0, 0, 0, 1, 1);
        schedule.drawn = 30_000 * 86_400;
        assert_eq!(schedule.draw(), 86_400 * 1_000_000_000);
    }

    #[test]
    fn poisson_gaps_are_exponential() {
        let mut schedule = Schedule::new(ArrivalProcess::Poisson, 1000.0, 0, 0, 1, 7);
        let times: Vec<u64> = (0..200_000).map(|_| schedule.draw()).collect();
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        assert!((variance - 1.0).abs() < 0.03, "{variance}");
    }

    #[test]
    fn schedules_are_reproducible_by_seed() {
        let draw = |seed, worker| {
            let mut schedule = Schedule::new(ArrivalProcess::Poisson, 100.0, 0, worker, 2, seed);
            (0..50).map(|_| schedule.draw()).collect::<Vec<_>>()
        };
        assert_eq!(draw(3, 0), draw(3, 0));
        assert_ne!(draw(3, 0), draw(4, 0));
        assert_ne!(draw(3, 0), draw(3, 1));
    }
}
