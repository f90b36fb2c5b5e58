//! Values of which each thread has its own, so that threads that count or queue do not wait for
//! each other's memory.
//!
//! There are more shards than processors, so that busy threads hardly ever share one. But sharing
//! is possible, and any thread may read all shards. So a value must have its own atomics or lock.
//! Start at [`Shards::mine`].

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::available_parallelism;

/// Most shards.
const MOST: usize = 64;

/// Number of shards for each processor.
const EACH: usize = 4;

/// Values for threads, each on its own cache lines.
#[derive(Debug)]
pub struct Shards<T>(Box<[Apart<T>]>);

/// A value with the alignment of two cache lines, because processors fetch them in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Apart<T>(T);

impl<T> Shards<T> {
    /// Makes the shards, each with a value from `make`.
    #[must_use]
    pub fn new(mut make: impl FnMut() -> T) -> Self {
        let count = available_parallelism().map_or(1, usize::from).saturating_mul(EACH).min(MOST).next_power_of_two();
        Self((0..count).map(|_| Apart(make())).collect())
    }

    /// Returns the value of this thread.
    #[must_use]
    pub fn mine(&self) -> &T {
        // The number of shards is a power of two.
        &self.0[number() & (self.0.len() - 1)].0
    }

    /// Returns all values.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|Apart(value)| value)
    }
}

impl<T: Default> Default for Shards<T> {
    fn default() -> Self {
        Self::new(T::default)
    }
}

/// Returns the number of this thread. Threads get numbers in turn.
fn number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    MINE.with(|mine| {
        if mine.get() == usize::MAX {
            mine.set(NEXT.fetch_add(1, Relaxed));
        }
        mine.get()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn what_each_thread_adds_is_found_in_all_together() {
        let shards: Shards<AtomicUsize> = Shards::default();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..1_000).for_each(|_| _ = shards.mine().fetch_add(1, Relaxed)));
            }
        });
        assert_eq!(shards.iter().map(|own| own.load(Relaxed)).sum::<usize>(), 8_000);
    }

    #[test]
    fn a_thread_keeps_its_shard_and_shards_share_no_line() {
        let shards: Shards<AtomicUsize> = Shards::default();
        assert!(std::ptr::eq(shards.mine(), shards.mine()));
        assert!(size_of::<Apart<u8>>() >= 128);
    }
}
