//! When requests are due: uniform or Poisson arrivals, reproducible by seed.

/// A small generator of random numbers (`SplitMix64`): reproducible choices, nothing secret.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of one seed; streams of neighbouring seeds are unrelated.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in 0 ≤ x < 1.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in 0..bound; the bias of the multiplication is below bound / 2^64.
    #[inline]
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }
}

/// How the gaps between requests are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Process {
    /// Equal gaps.
    Uniform,
    /// Exponential gaps: what many independent users make.
    Poisson,
}

/// The intended send times of one worker, endless and ascending.
#[derive(Clone, Debug)]
pub struct Arrivals {
    process: Process,
    start: u64,
    gap: f64, // nanoseconds between two requests of this worker, on average
    drawn: u64,
    offset: f64, // of the request drawn last, from the start
    phase: f64,
    random: Random,
}

impl Arrivals {
    /// The share of worker `worker` of `workers` in `rate` requests per second from `start` (nanoseconds) on.
    ///
    /// Uniform arrivals of all workers together are evenly spaced; Poisson ones are Poisson again.
    pub fn new(process: Process, rate: f64, start: u64, worker: usize, workers: usize, seed: u64) -> Self {
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

    /// The next intended send time.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.offset = match self.process {
            Process::Uniform => (self.drawn as f64 + self.phase) * self.gap, // no error adds up
            Process::Poisson => self.offset - (1.0 - self.random.unit()).ln() * self.gap,
        };
        self.drawn += 1;
        self.start + self.offset as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_arrivals_of_all_workers_are_evenly_spaced_and_do_not_drift_in_a_day() {
        let mut all: Vec<u64> = (0..4)
            .flat_map(|worker| {
                let mut arrivals = Arrivals::new(Process::Uniform, 1000.0, 5, worker, 4, 1);
                (0..250).map(move |_| arrivals.draw()).collect::<Vec<_>>()
            })
            .collect();
        all.sort_unstable();
        let expected: Vec<u64> = (0..1000).map(|i| 5 + i * 1_000_000).collect();
        assert_eq!(all, expected);
        let mut arrivals = Arrivals::new(Process::Uniform, 30_000.0, 0, 0, 1, 1);
        arrivals.drawn = 30_000 * 86_400;
        assert_eq!(arrivals.draw(), 86_400 * 1_000_000_000);
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_the_variance_of_an_exponential() {
        let mut arrivals = Arrivals::new(Process::Poisson, 1000.0, 0, 0, 1, 7);
        let times: Vec<u64> = (0..200_000).map(|_| arrivals.draw()).collect();
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        assert!((variance - 1.0).abs() < 0.03, "{variance}");
    }

    #[test]
    fn a_seed_gives_the_same_arrivals_again_and_another_seed_others() {
        let draw = |seed, worker| {
            let mut arrivals = Arrivals::new(Process::Poisson, 100.0, 0, worker, 2, seed);
            (0..50).map(|_| arrivals.draw()).collect::<Vec<_>>()
        };
        assert_eq!(draw(3, 0), draw(3, 0));
        assert_ne!(draw(3, 0), draw(4, 0));
        assert_ne!(draw(3, 0), draw(3, 1));
    }

    #[test]
    fn numbers_below_a_bound_are_even() {
        let mut random = Random::new(1);
        let mut seen = [0u32; 7];
        for _ in 0..70_000 {
            seen[random.below(7)] += 1;
        }
        assert!(seen.iter().all(|&count| (9_500..10_500).contains(&count)), "{seen:?}");
    }
}
