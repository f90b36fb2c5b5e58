//! A phone as clients see it, with the JSON that shows it.
//!
//! An adapter gives out the same [`Seen`] until something that a client can see has changed, so that this JSON is made once for each
//! change that is seen. When a phone was read is no part of it. Knows no tool: what a rendering contains is said where it is made.

use super::snapshot::Snapshot;
use crate::phones::contract::{Device, DeviceDetail};
use std::ops::Deref;
use std::sync::{Arc, LazyLock};
use toolwarrant::{Prepared, RenderBudget};

/// Most bytes that the JSON of all phones takes in this process, in both forms in which answers have it: about 290 for a phone in a list
/// and 920 for its detail. What does not fit is made for each answer. Beside it a phone that was ever seen takes about 560.
pub const RENDERED_MAX: usize = 256 << 20;

static BUDGET: LazyLock<Arc<RenderBudget>> = LazyLock::new(|| Arc::new(RenderBudget::new(RENDERED_MAX)));

/// What is shown of a phone. Dereferences to the snapshot.
#[derive(Debug)]
pub struct Seen {
    /// What was read.
    pub snapshot: Snapshot,
    /// The phone in a list.
    pub row: Prepared<Device>,
    /// The result of get_device.
    pub detail: Prepared<DeviceDetail>,
}

impl From<Snapshot> for Seen {
    fn from(snapshot: Snapshot) -> Self {
        Self { snapshot, row: Prepared::within(&BUDGET), detail: Prepared::within(&BUDGET) }
    }
}

impl Deref for Seen {
    type Target = Snapshot;
    fn deref(&self) -> &Snapshot {
        &self.snapshot
    }
}

/// Two that show the same are equal, whichever JSON is made yet.
impl PartialEq for Seen {
    fn eq(&self, other: &Self) -> bool {
        self.snapshot == other.snapshot
    }
}
