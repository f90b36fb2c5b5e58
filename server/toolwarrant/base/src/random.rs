//! Randomness, from one source that a test can replay.

use crate::ignore_poison;
use std::sync::{Arc, Mutex};

/// The operating system, or a seed.
#[derive(Clone, Debug)]
pub enum Random {
    /// Cannot be predicted.
    System,
    /// The same seed gives the same bytes. Clones share the stream.
    Seeded(Arc<Mutex<SplitMix>>),
}

impl Random {
    /// Returns a source whose bytes `seed` determines.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self::Seeded(Arc::new(Mutex::new(SplitMix(seed))))
    }

    /// Returns the next bytes. Fails if the system provides none.
    pub fn bytes<const N: usize>(&self) -> Result<[u8; N], getrandom::Error> {
        let mut bytes = [0; N];
        match self {
            Self::System => getrandom::fill(&mut bytes)?,
            Self::Seeded(stream) => {
                let mut stream = ignore_poison(stream.lock());
                for chunk in bytes.chunks_mut(8) {
                    chunk.copy_from_slice(&stream.next().to_le_bytes()[..chunk.len()]);
                }
            }
        }
        Ok(bytes)
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014). Never use it for secrets.
#[derive(Clone, Debug)]
pub struct SplitMix(pub u64);

impl SplitMix {
    /// Returns the next number, uniformly distributed.
    #[expect(clippy::should_implement_trait, reason = "it never ends, so an iterator would say less")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`. `n` must not be 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}
