//! Grants: the targets that an application may see.

use std::collections::{BTreeMap, BTreeSet, btree_set};
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::LazyLock;

/// The targets that an application may see. Ids of two resources are unrelated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grants(
    /// Absent resources are not granted. `None` grants everything.
    Option<BTreeMap<Box<str>, Granted>>,
);

/// The targets of one resource that an application may see, present and future.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Granted {
    /// The empty prefix grants every target. No prefix begins with another one.
    prefixes: BTreeSet<Box<str>>,
    /// Ids that begin with no prefix.
    ids: BTreeSet<Box<str>>,
    except: BTreeSet<Box<str>>,
}

/// A part of a grant, between two ids.
#[derive(Debug)]
pub enum Run<'a> {
    /// The ids with this prefix, except for [`Granted::exceptions`].
    Prefix(&'a str),
    /// These ids.
    Ids(btree_set::Range<'a, Box<str>>),
}

impl Grants {
    /// Grants everything, present and future.
    #[must_use]
    pub const fn everything() -> Self {
        Self(None)
    }

    /// Grants no target.
    #[must_use]
    pub const fn nothing() -> Self {
        Self::only(BTreeMap::new())
    }

    /// Grants these targets alone.
    #[must_use]
    pub const fn only(resources: BTreeMap<Box<str>, Granted>) -> Self {
        Self(Some(resources))
    }

    /// Replaces the grant of one resource. A grant of everything stays.
    #[must_use]
    pub fn with(mut self, resource: &str, granted: Granted) -> Self {
        if let Some(resources) = &mut self.0 {
            resources.insert(resource.into(), granted);
        }
        self
    }

    /// Returns the grant of a resource, if it has one.
    #[must_use]
    pub fn of(&self, resource: &str) -> Option<&Granted> {
        self.0.as_ref().map_or(Some(&EVERY), |resources| resources.get(resource))
    }

    /// Returns true if the target may be seen.
    #[must_use]
    pub fn covers(&self, resource: &str, id: &str) -> bool {
        self.of(resource).is_some_and(|granted| granted.covers(id))
    }

    /// Returns the grant of each resource; `None` if everything is granted.
    #[must_use]
    pub fn resources(&self) -> Option<&BTreeMap<Box<str>, Granted>> {
        self.0.as_ref()
    }

    /// Returns true if these grants show no more than `others`.
    #[must_use]
    pub fn are_within(&self, others: &Self) -> bool {
        match (&self.0, &others.0) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(resources), _) => resources.iter().all(|(resource, granted)| {
                others.of(resource).map_or(granted.is_empty(), |other| granted.is_within(other))
            }),
        }
    }

    /// Returns the grants of targets that both show.
    #[must_use]
    pub fn intersection(&self, others: &Self) -> Self {
        match (&self.0, &others.0) {
            (None, _) => others.clone(),
            (_, None) => self.clone(),
            (Some(resources), Some(others)) => Self::only(
                resources
                    .iter()
                    .filter_map(|(name, granted)| Some((name.clone(), granted.intersection(others.get(name)?))))
                    .collect(),
            ),
        }
    }

    /// Returns the grants for changing. A grant of everything becomes a full grant of each of these
    /// `resources`.
    pub fn spell_out<'a>(&mut self, resources: impl IntoIterator<Item = &'a str>) -> &mut BTreeMap<Box<str>, Granted> {
        self.0.get_or_insert_with(|| resources.into_iter().map(|resource| (resource.into(), Granted::all())).collect())
    }
}

static EVERY: LazyLock<Granted> = LazyLock::new(Granted::all);

impl Granted {
    /// Grants every target.
    #[must_use]
    pub fn all() -> Self {
        Self::prefix("")
    }

    /// Grants the ids with this prefix.
    #[must_use]
    pub fn prefix(prefix: &str) -> Self {
        Self { prefixes: [prefix.into()].into(), ..Self::default() }
    }

    /// Grants these ids.
    #[must_use]
    pub fn some<'a>(ids: impl IntoIterator<Item = &'a str>) -> Self {
        Self { ids: ids.into_iter().map(Box::from).collect(), ..Self::default() }
    }

    /// Returns true if every target is granted.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.except.is_empty() && self.prefixes.first().is_some_and(|prefix| prefix.is_empty())
    }

    /// Returns true if nothing is granted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.prefixes.is_empty() && self.ids.is_empty()
    }

    /// Returns the granted prefixes, in order.
    pub fn prefixes(&self) -> impl Iterator<Item = &str> {
        self.prefixes.iter().map(|prefix| &**prefix)
    }

    /// Returns the granted ids without a granted prefix.
    #[must_use]
    pub fn ids(&self) -> &BTreeSet<Box<str>> {
        &self.ids
    }

    /// Returns the excepted ids.
    #[must_use]
    pub fn exceptions(&self) -> &BTreeSet<Box<str>> {
        &self.except
    }

    /// Lists the terms: `*` for all, `vmos-*` for a prefix, an id, and `!` and an id for an
    /// exception.
    #[must_use]
    pub fn terms(&self) -> Vec<String> {
        let prefixes = self.prefixes.iter().map(|prefix| format!("{prefix}*"));
        let ids = self.ids.iter().map(|id| id.to_string());
        prefixes.chain(ids).chain(self.except.iter().map(|id| format!("!{id}"))).collect()
    }

    /// Returns true if the id is granted.
    #[must_use]
    pub fn covers(&self, id: &str) -> bool {
        self.ids.contains(id) || self.prefix_of(id).is_some() && !self.except.contains(id)
    }

    /// Returns true if an id with this prefix may be granted.
    #[must_use]
    pub fn meets(&self, prefix: &str) -> bool {
        let begins = |set: &BTreeSet<Box<str>>| within(set, prefix).next().is_some();
        begins(&self.ids) || begins(&self.prefixes) || self.prefix_of(prefix).is_some()
    }

    /// Returns the parts after an id, in the order of ids.
    pub fn runs<'a>(&'a self, after: Option<&'a str>) -> impl Iterator<Item = Run<'a>> {
        let current = after.and_then(|after| self.prefix_of(after));
        let later = self.prefixes.range::<str, _>((after.map_or(Unbounded, Excluded), Unbounded));
        let later = later.map(|prefix| &**prefix).filter(move |prefix| Some(*prefix) != current);
        let mut low = after;
        current.into_iter().chain(later).map(Some).chain([None]).flat_map(move |prefix| {
            let is_ahead = low.is_none_or(|low| prefix.is_none_or(|prefix| low < prefix));
            let bounds = (low.map_or(Unbounded, Excluded), prefix.map_or(Unbounded, Excluded));
            let ids = is_ahead.then(|| self.ids.range::<str, _>(bounds)).filter(|ids| ids.clone().next().is_some());
            low = low.max(prefix);
            ids.map(Run::Ids).into_iter().chain(prefix.map(Run::Prefix))
        })
    }

    /// Grants this id.
    pub fn add(&mut self, id: &str) {
        if !self.except.remove(id) && self.prefix_of(id).is_none() {
            self.ids.insert(id.into());
        }
    }

    /// Grants all ids with this prefix. Exceptions stay.
    pub fn add_prefix(&mut self, prefix: &str) {
        self.ids.retain(|id| !id.starts_with(prefix));
        if self.prefix_of(prefix).is_none() {
            self.prefixes.retain(|known| !known.starts_with(prefix));
            self.prefixes.insert(prefix.into());
        }
    }

    /// Hides this id. Under a granted prefix it becomes an exception.
    pub fn remove(&mut self, id: &str) {
        if !self.ids.remove(id) && self.prefix_of(id).is_some() {
            self.except.insert(id.into());
        }
    }

    /// Hides all ids with this prefix. Returns false, and changes nothing, if a shorter prefix is
    /// granted.
    pub fn remove_prefix(&mut self, prefix: &str) -> bool {
        if self.prefix_of(prefix).is_some_and(|known| known != prefix) {
            return false;
        }
        for set in [&mut self.prefixes, &mut self.ids, &mut self.except] {
            set.retain(|known| !known.starts_with(prefix));
        }
        true
    }

    fn prefix_of(&self, id: &str) -> Option<&str> {
        // The last prefix before the id decides, because every text between a prefix and an id with
        // it has the prefix, and no prefix begins with another one. Most grants have one.
        let last = match self.prefixes.len() {
            1 => self.prefixes.first()?,
            _ => self.prefixes.range::<str, _>((Unbounded, Included(id))).next_back()?,
        };
        id.starts_with(&**last).then_some(last)
    }

    fn intersection(&self, other: &Self) -> Self {
        let both = [(self, other), (other, self)].into_iter();
        let prefixes =
            both.clone().flat_map(|(one, other)| one.prefixes.iter().filter(|id| other.prefix_of(id).is_some()));
        let ids = both.clone().flat_map(|(one, other)| one.ids.iter().filter(|id| other.covers(id)));
        let (prefixes, ids) = (prefixes.cloned().collect(), ids.cloned().collect());
        let mut shown = Self { prefixes, ids, except: BTreeSet::new() };
        let except = both.flat_map(|(one, _)| &one.except).filter(|id| shown.prefix_of(id).is_some());
        shown.except = except.cloned().collect();
        shown
    }

    fn is_within(&self, other: &Self) -> bool {
        let is_whole = |prefix: &str| {
            other.prefix_of(prefix).is_some() && within(&other.except, prefix).all(|id| self.except.contains(id))
        };
        self.prefixes().all(is_whole) && self.ids.iter().all(|id| other.covers(id))
    }
}

fn within<'a>(set: &'a BTreeSet<Box<str>>, prefix: &'a str) -> impl Iterator<Item = &'a Box<str>> {
    set.range::<str, _>((Included(prefix), Unbounded)).take_while(move |item| item.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolwarrant_base::random::SplitMix;

    #[test]
    fn a_grant_shows_targets_of_its_own_resource_and_no_others() {
        let tray = Grants::nothing().with("tray", Granted::some(["p-1"]));
        assert!(tray.covers("tray", "p-1") && !tray.covers("tray", "p-2") && !tray.covers("printer", "p-1"));
        let trays = Grants::nothing().with("tray", Granted::all());
        assert!(trays.covers("tray", "p-2") && !trays.covers("printer", "p-2"));
        assert!(!Grants::nothing().covers("tray", "p-1"));
        assert_eq!((tray.of("printer"), trays.of("tray")), (None, Some(&Granted::all())));
    }

    #[test]
    fn grants_of_everything_cover_what_comes_and_can_be_spelled_out_to_be_narrowed() {
        let mut grants = Grants::everything().with("tray", Granted::some([]));
        assert!(grants.covers("tray", "p-1") && grants.resources().is_none());
        grants.spell_out(["printer", "tray"]).remove("tray");
        assert!(grants.covers("printer", "p-1") && !grants.covers("tray", "p-1"));
        grants.spell_out(["tray"]);
        assert_eq!(grants, Grants::nothing().with("printer", Granted::all()));
    }

    #[test]
    fn edits_of_a_grant_and_its_runs_agree_with_a_set_of_all_words() {
        let letters = ["", "a", "b", "c"];
        let words = letters
            .iter()
            .flat_map(|one| letters.iter().flat_map(move |two| letters.map(|three| [one, two, three].concat())));
        let words: BTreeSet<String> = words.filter(|word: &String| !word.is_empty()).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut splitmix = SplitMix(7);
        let mut random = |bound: usize| splitmix.below(bound as u64) as usize;
        for _ in 0..300 {
            let (mut granted, mut model) = (Granted::default(), BTreeSet::new());
            for _ in 0..12 {
                let before = (granted.clone(), model.clone());
                let word = if random(10) == 0 { "" } else { words[random(words.len())] };
                let of_word = || words.iter().copied().filter(|other| other.starts_with(word));
                match random(4) {
                    0 if !word.is_empty() => {
                        granted.add(word);
                        model.insert(word);
                    }
                    1 => {
                        granted.add_prefix(word);
                        model.extend(of_word().filter(|other| !granted.exceptions().contains(*other)));
                    }
                    2 => {
                        granted.remove(word);
                        model.remove(word);
                    }
                    _ => {
                        if granted.remove_prefix(word) {
                            model.retain(|other| !other.starts_with(word));
                        }
                    }
                }
                let covered: BTreeSet<_> = words.iter().copied().filter(|word| granted.covers(word)).collect();
                assert_eq!(covered, model, "{granted:?}");
                let (one, other) = (grants(&granted), grants(&before.0));
                if one.are_within(&other) {
                    assert!(model.is_subset(&before.1), "{granted:?} {before:?}");
                }
                let common = one.intersection(&other);
                let shown = words.iter().copied().filter(|word| common.covers("tray", word));
                assert!(shown.eq(model.intersection(&before.1).copied()), "{granted:?} {before:?}");
                assert!(common.are_within(&one) && common.are_within(&other), "{granted:?} {before:?}");
                assert!(
                    words
                        .iter()
                        .all(|prefix| granted.meets(prefix) || !model.iter().any(|word| word.starts_with(prefix)))
                );
                for after in words.iter().copied().map(Some).chain([None]) {
                    let mut walked = Vec::new();
                    for run in granted.runs(after) {
                        match run {
                            Run::Ids(ids) => walked.extend(ids.map(|id| &**id)),
                            Run::Prefix(prefix) => walked.extend(words.iter().copied().filter(|word| {
                                word.starts_with(prefix) && Some(*word) > after && !granted.exceptions().contains(*word)
                            })),
                        }
                    }
                    let expected: Vec<_> = model.iter().copied().filter(|word| Some(*word) > after).collect();
                    assert_eq!(walked, expected, "{granted:?} after {after:?}");
                }
            }
        }
    }

    fn grants(granted: &Granted) -> Grants {
        Grants::nothing().with("tray", granted.clone())
    }
}
