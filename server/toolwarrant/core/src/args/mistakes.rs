//! The mistakes in arguments, each with its place: `edits[2].oldText`.

use toolwarrant_base::wording::{Echo, Words};
use toolwarrant_base::words;

pub(super) const MAX_LISTED: usize = 32;

/// The mistakes found so far, as many as a refusal lists.
#[derive(Debug, Default)]
pub struct Mistakes {
    listed: Vec<Mistake>,
    more: usize,
    hides_values: bool,
}

#[derive(Debug)]
struct Mistake {
    /// The innermost first.
    place: Vec<Step>,
    what: Words,
}

#[derive(Debug, Clone)]
pub(super) enum Step {
    Member(&'static str),
    Item(usize),
    /// A name that the client chose.
    Name(Echo),
}

impl Mistakes {
    pub(super) fn without_values() -> Self {
        Self { hides_values: true, ..Self::default() }
    }

    /// Returns the step to the n-th member, whose name the client chose.
    pub(super) fn step(&self, name: &str, n: usize) -> Step {
        if self.hides_values { Step::Item(n) } else { Step::Name(Echo::of(name)) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    /// Returns the position of the next mistake, for [`Self::place`].
    pub(super) fn next(&self) -> usize {
        self.listed.len()
    }

    pub(super) fn add(&mut self, what: impl FnOnce() -> Words) {
        if self.listed.len() < MAX_LISTED {
            self.listed.push(Mistake { place: Vec::new(), what: what() });
        } else {
            self.more += 1;
        }
    }

    pub(super) fn add_at(&mut self, step: &Step, what: impl FnOnce() -> Words) {
        let from = self.next();
        self.add(what);
        self.place(from, step);
    }

    /// Adds a value that is not allowed, with the text that may be shown.
    pub(super) fn add_value(&mut self, sent: Option<&str>, allowed: fn() -> Words) {
        let sent = sent.filter(|_| !self.hides_values);
        self.add(|| {
            let sent = sent.map_or("what was sent".into(), |sent| words![Echo::of(sent)]);
            words![": ", sent, " is not ", allowed()]
        });
    }

    /// Places the mistakes since `from` below a step.
    pub(super) fn place(&mut self, from: usize, step: &Step) {
        self.listed[from..].iter_mut().for_each(|mistake| mistake.place.push(step.clone()));
    }

    /// Returns each mistake in words, and the number of those that are not listed.
    pub(super) fn say(self) -> (Vec<Words>, usize) {
        (self.listed.into_iter().map(Mistake::say).collect(), self.more)
    }
}

impl Mistake {
    fn say(self) -> Words {
        let steps = self.place.into_iter().rev().enumerate().map(|(n, step)| match step {
            Step::Member(name) if n == 0 => name.into(),
            Step::Member(name) => words![".", name],
            Step::Item(item) => words!["[", item, "]"],
            Step::Name(name) => words![".", name],
        });
        words!["`", Words::list(&steps.collect::<Vec<_>>(), ""), "`", self.what]
    }
}
