//! A step of the tests, and what it ran.

use anyhow::Result;
use std::collections::BTreeMap;

pub(super) struct Step<'a> {
    pub(super) name: String,
    pub(super) run: Box<dyn FnOnce() -> Result<Ran> + Send + 'a>,
}

impl<'a> Step<'a> {
    pub(super) fn new(name: &str, run: impl FnOnce() -> Result<u64> + Send + 'a) -> Self {
        let run = move || run().map(|passed| Ran { passed, ..Ran::default() });
        Self { name: name.to_owned(), run: Box::new(run) }
    }

    /// Leaves the step out with this reason unless it is possible.
    pub(super) fn with(
        name: &str,
        (is_possible, reason): (bool, &str),
        run: impl FnOnce() -> Result<u64> + Send + 'a,
    ) -> Self {
        let left_out = BTreeMap::from([(format!("{reason}: {name}"), 1)]);
        let without = Box::new(move || Ok(Ran { left_out, ..Ran::default() }));
        if is_possible { Self::new(name, run) } else { Self { name: name.to_owned(), run: without } }
    }
}

#[derive(Default)]
pub(super) struct Ran {
    pub(super) passed: u64,
    /// By reason.
    pub(super) left_out: BTreeMap<String, u64>,
    pub(super) tests: Vec<(f64, String)>,
}

impl Ran {
    pub(super) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.tests.extend(other.tests);
        for (reason, count) in other.left_out {
            *self.left_out.entry(reason).or_default() += count;
        }
    }
}
