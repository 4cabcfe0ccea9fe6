//! Random numbers that never change: everything is made of `SplitMix64` by the few lines here.

use onionskin_core::SplitMix64;

/// A generator with a seed.
#[derive(Clone, Debug)]
pub struct Dice(SplitMix64);

impl Dice {
    /// Starts from a seed; every seed is good.
    pub fn new(seed: u64) -> Dice {
        Dice(SplitMix64::new(seed))
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `n`; 0 when `n` is 0. Off from uniform by less than n / 2^64.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// An index below `n`; 0 when `n` is 0.
    pub fn index(&mut self, n: usize) -> usize {
        self.below(n as u64) as usize
    }

    /// A number above 0 and below 1.
    pub fn unit(&mut self) -> f64 {
        ((self.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// A normal number, by Box and Muller. The second of each pair is not kept, so that a number
    /// costs the same wherever it is drawn.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.unit().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// A number of the gamma distribution with this shape and scale 1, by Marsaglia and Tsang
    /// (2000). Shapes below 1 are made from the next higher one.
    pub fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            let boost = self.unit().powf(1.0 / shape);
            return self.gamma(shape + 1.0) * boost;
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && self.unit().ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_distributions() {
        let draws = 40_000;
        for shape in [0.5, 1.0, 3.0, 40.0] {
            let mut dice = Dice::new(11);
            let values: Vec<f64> = (0..draws).map(|_| dice.gamma(shape)).collect();
            let mean = values.iter().sum::<f64>() / f64::from(draws);
            let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / f64::from(draws);
            // Four standard errors: of the mean √(k/n); of the variance √((6/k + 2) k²/n).
            let n = f64::from(draws);
            assert!((mean - shape).abs() < 4.0 * (shape / n).sqrt(), "mean {mean} of {shape}, seed 11");
            let error = ((6.0 / shape + 2.0) * shape * shape / n).sqrt();
            assert!((variance - shape).abs() < 4.0 * error, "variance {variance} of {shape}, seed 11");
        }
    }

    #[test]
    fn below_reaches_every_number_and_no_other() {
        let mut dice = Dice::new(3);
        let mut seen = [0u32; 7];
        for _ in 0..7_000 {
            seen[dice.below(7) as usize] += 1;
        }
        // 1000 each; four standard deviations are 4 √(7000 · 1/7 · 6/7) = 117.
        assert!(seen.iter().all(|n| n.abs_diff(1000) < 117), "{seen:?}, seed 3");
        assert_eq!(dice.below(0), 0);
    }
}
