//! Chance that comes out the same each time.

/// SplitMix64.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least + 1)
    }

    pub fn count(&mut self, least: u32, most: u32) -> u32 {
        u32::try_from(self.between(u64::from(least), u64::from(most))).unwrap()
    }

    pub fn percent(&mut self, chance: u32) -> bool {
        self.count(1, 100) <= chance
    }

    /// The index of one of them, each as likely as its weight.
    pub fn weighted(&mut self, weights: &[u32]) -> usize {
        let mut left = self.count(1, weights.iter().sum::<u32>().max(1));
        for (index, weight) in weights.iter().enumerate() {
            if left <= *weight {
                return index;
            }
            left -= weight;
        }
        weights.len() - 1
    }
}
