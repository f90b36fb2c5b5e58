//! Grants: the targets that an application may see.

use std::collections::{BTreeMap, BTreeSet};

/// The targets that an application may see, by resource. Ids of two resources are unrelated: a
/// grant of the tray `p-1` does not show a printer `p-1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grants(
    /// The grant of each resource. A resource that is absent is not granted. `None` grants every
    /// target of every resource, present and future.
    Option<BTreeMap<Box<str>, Granted>>,
);

/// The targets of one resource that an application may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Granted {
    /// Every target, present and future.
    All,
    /// The targets with these ids.
    Some(BTreeSet<Box<str>>),
}

impl Grants {
    /// Grants every target of every resource, present and future.
    #[must_use]
    pub const fn everything() -> Self {
        Self(None)
    }

    /// Grants no target.
    #[must_use]
    pub const fn nothing() -> Self {
        Self::only(BTreeMap::new())
    }

    /// Grants these targets of each resource, and no targets of other resources.
    #[must_use]
    pub const fn only(resources: BTreeMap<Box<str>, Granted>) -> Self {
        Self(Some(resources))
    }

    /// Replaces the grant of one resource. Grants of everything stay unchanged.
    #[must_use]
    pub fn with(mut self, resource: &str, granted: Granted) -> Self {
        if let Some(resources) = &mut self.0 {
            resources.insert(resource.into(), granted);
        }
        self
    }

    /// Returns the grant of a resource; `None` if no target of it is granted.
    #[must_use]
    pub fn of(&self, resource: &str) -> Option<&Granted> {
        self.0.as_ref().map_or(Some(&Granted::All), |resources| resources.get(resource))
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

    /// Returns true if these grants do not show more than `others`.
    #[must_use]
    pub fn are_within(&self, others: &Self) -> bool {
        match (&self.0, &others.0) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(resources), _) => resources.iter().all(|(resource, granted)| match (granted, others.of(resource)) {
                (Granted::Some(ids), Some(other)) => ids.iter().all(|id| other.covers(id)),
                (Granted::Some(ids), None) => ids.is_empty(),
                (Granted::All, other) => other == Some(&Granted::All),
            }),
        }
    }

    /// Returns the grant of each resource for changing. A grant of everything first becomes a full
    /// grant of each of these `resources`, so that it can be narrowed.
    pub fn spell_out<'a>(&mut self, resources: impl IntoIterator<Item = &'a str>) -> &mut BTreeMap<Box<str>, Granted> {
        self.0.get_or_insert_with(|| resources.into_iter().map(|resource| (resource.into(), Granted::All)).collect())
    }
}

impl Granted {
    /// Grants these ids.
    #[must_use]
    pub fn some<'a>(ids: impl IntoIterator<Item = &'a str>) -> Self {
        Self::Some(ids.into_iter().map(Box::from).collect())
    }

    /// Returns true if the id is granted.
    #[must_use]
    pub fn covers(&self, id: &str) -> bool {
        match self {
            Self::All => true,
            Self::Some(ids) => ids.contains(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_shows_targets_of_its_own_resource_and_no_others() {
        let tray = Grants::nothing().with("tray", Granted::some(["p-1"]));
        assert!(tray.covers("tray", "p-1") && !tray.covers("tray", "p-2") && !tray.covers("printer", "p-1"));
        let trays = Grants::nothing().with("tray", Granted::All);
        assert!(trays.covers("tray", "p-2") && !trays.covers("printer", "p-2"));
        assert!(!Grants::nothing().covers("tray", "p-1"));
        assert_eq!((tray.of("printer"), trays.of("tray")), (None, Some(&Granted::All)));
    }

    #[test]
    fn grants_of_everything_cover_what_comes_and_can_be_spelled_out_to_be_narrowed() {
        let mut grants = Grants::everything().with("tray", Granted::some([]));
        assert!(grants.covers("tray", "p-1") && grants.resources().is_none());
        grants.spell_out(["printer", "tray"]).remove("tray");
        assert!(grants.covers("printer", "p-1") && !grants.covers("tray", "p-1"));
        grants.spell_out(["tray"]);
        assert_eq!(grants, Grants::nothing().with("printer", Granted::All));
    }
}
