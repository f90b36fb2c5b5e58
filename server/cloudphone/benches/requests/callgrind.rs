//! Parses callgrind's output. Start at [`Profile::read`].

use std::collections::HashMap;

#[derive(Debug, Default)]
pub(crate) struct Profile(HashMap<String, Did>);

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Did {
    /// Without those of callees.
    pub(crate) instructions: f64,
    pub(crate) calls: f64,
}

impl Profile {
    /// Parses a dump. It has a name once, and then its number: `fn=(12) name`, `fn=(12)`. A line of
    /// costs has the place and the instructions. The line after `calls=` has the cost of the
    /// callee, which is in the callee's own lines, too.
    pub(crate) fn read(dump: &str) -> Self {
        let (mut names, mut did) = (HashMap::<&str, &str>::new(), HashMap::<&str, Did>::new());
        let (mut function, mut callee, mut of_callee) = ("", "", false);
        for line in dump.lines() {
            let mut named = |text| intern_name(&mut names, text);
            if let Some(text) = line.strip_prefix("fn=") {
                function = named(text);
            } else if let Some(text) = line.strip_prefix("cfn=") {
                callee = named(text);
            } else if let Some(text) = line.strip_prefix("calls=") {
                did.entry(callee).or_default().calls += first_figure(text);
                of_callee = true;
            } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
                if !of_callee {
                    let cost = line.split_once(' ').map_or("", |(_, cost)| cost);
                    did.entry(function).or_default().instructions += first_figure(cost);
                }
                of_callee = false;
            }
        }
        let mut whole = Self::default();
        for (number, did) in did {
            let name = names.get(number).copied().unwrap_or(number);
            whole.add(plain(name), did);
        }
        whole
    }

    pub(crate) fn beyond(&self, before: &Self, requests: f64) -> Self {
        let mut beyond = Self::default();
        for name in self.0.keys().chain(before.0.keys().filter(|name| !self.0.contains_key(*name))) {
            let [now, then] = [self, before].map(|profile| profile.0.get(name).copied().unwrap_or_default());
            let instructions = (now.instructions - then.instructions) / requests;
            beyond.add(name, Did { instructions, calls: (now.calls - then.calls) / requests });
        }
        beyond
    }

    pub(crate) fn and(mut self, other: &Self) -> Self {
        for (name, did) in &other.0 {
            self.add(name, *did);
        }
        self
    }

    pub(crate) fn sum(&self, is_one: impl Fn(&str) -> bool) -> Did {
        self.0.iter().filter(|(name, _)| is_one(name)).fold(Did::default(), |sum, (_, did)| Did {
            instructions: sum.instructions + did.instructions,
            calls: sum.calls + did.calls,
        })
    }

    pub(crate) fn largest(&self, count: usize) -> Vec<(&str, Did)> {
        let mut all: Vec<_> = self.0.iter().map(|(name, did)| (name.as_str(), *did)).collect();
        all.sort_by(|(_, one), (_, other)| other.instructions.total_cmp(&one.instructions));
        all.truncate(count);
        all
    }

    fn add(&mut self, name: &str, Did { instructions, calls }: Did) {
        let did = self.0.entry(name.to_owned()).or_default();
        did.instructions += instructions;
        did.calls += calls;
    }
}

fn intern_name<'a>(names: &mut HashMap<&'a str, &'a str>, text: &'a str) -> &'a str {
    match text.split_once(' ') {
        Some((number, name)) => {
            names.insert(number, name);
            number
        }
        None => text,
    }
}

/// Removes the depth of a recursive function, `name'2`, and the version of a library's,
/// `name@@GLIBC_2.3`.
fn plain(name: &str) -> &str {
    let name = name.split_once("@@").map_or(name, |(name, _)| name);
    match name.rsplit_once('\'') {
        Some((whole, depth)) if depth.bytes().all(|byte| byte.is_ascii_digit()) => whole,
        _ => name,
    }
}

fn first_figure(text: &str) -> f64 {
    text.split(' ').next().and_then(|figure| figure.parse().ok()).unwrap_or(0.0)
}
