//! The facts about a write on which decisions of the machine depend.

/// The abilities of the upstream and the probe for one write on one target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The upstream recognises a repeated request and does not carry it out again.
    pub dedupes: bool,
    /// The upstream can be asked for the outcome of a request, by the id of its task.
    pub looks_up: bool,
    /// The directions that the probe can prove.
    pub provability: Provability,
    /// The reason why no request will ever reach the target again, as a sentence fragment.
    pub gone: Option<&'static str>,
}

/// The directions that the probe of a write can prove on its target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Provability {
    /// Both the presence and the absence of the effect.
    #[default]
    Both,
    /// Only the presence of the effect. An `Absent` counts as `Unreadable`.
    Presence,
    /// Only the absence of the effect. A `Present` proves nothing.
    Absence,
    /// Neither direction, for this reason, a sentence fragment. The engine takes no reading and no
    /// baseline.
    Nothing(&'static str),
}
