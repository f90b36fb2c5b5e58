//! The simulated garden. A real service has a client of its garden controller here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use toolwarrant::{Random, Timestamp};

pub struct Plot {
    pub id: &'static str,
    pub valve: Valve,
    pub metered: bool,
}

#[derive(PartialEq)]
pub enum Valve {
    Works,
    /// The controller reports that it watered the bed, and no water flows.
    Stuck,
    Missing,
}

pub const BEDS: &[Plot] = &[
    Plot { id: "fern", valve: Valve::Works, metered: true },
    Plot { id: "herb", valve: Valve::Works, metered: false },
    Plot { id: "ivy", valve: Valve::Missing, metered: true },
    Plot { id: "moss", valve: Valve::Stuck, metered: true },
];

pub fn find(id: &str) -> Option<&'static Plot> {
    BEDS.iter().find(|plot| plot.id == id)
}

/// The most codes that the lock of the shed stores.
const CODES: usize = 2;

pub struct Garden {
    random: Random,
    litres: Mutex<BTreeMap<&'static str, i64>>,
    jobs: Mutex<BTreeSet<String>>,
    /// The ends of the codes that the lock of the shed stores.
    codes: Mutex<Vec<Timestamp>>,
}

impl Garden {
    pub fn new(random: Random) -> Self {
        Self { random, litres: Mutex::default(), jobs: Mutex::default(), codes: Mutex::default() }
    }

    /// Adds a code to the lock of the shed. A full lock fails with the end of its first code.
    pub fn add_code(&self, now: Timestamp, ends_at: Timestamp) -> Result<String, Timestamp> {
        let mut codes = self.codes.lock().expect("no panic");
        codes.retain(|end| *end > now);
        if codes.len() == CODES {
            return Err(codes[0]);
        }
        codes.push(ends_at);
        let drawn = self.random.bytes().expect("the system has randomness");
        Ok(format!("{:06}", u32::from_le_bytes(drawn) % 1_000_000))
    }

    /// Lets the controller start a job.
    pub fn water(&self, plot: &'static Plot, job: &str, litres: i64) {
        if plot.valve == Valve::Works {
            *self.litres.lock().expect("no panic").entry(plot.id).or_default() += litres;
        }
        self.jobs.lock().expect("no panic").insert(job.to_owned());
    }

    /// Returns true if the controller reports a job as done.
    pub fn has_done(&self, job: &str) -> bool {
        self.jobs.lock().expect("no panic").contains(job)
    }

    /// Reads the meter of a bed, if it has one.
    pub fn meter(&self, plot: &Plot) -> Option<i64> {
        let litres = self.litres.lock().expect("no panic").get(plot.id).copied();
        plot.metered.then_some(litres.unwrap_or_default())
    }
}
