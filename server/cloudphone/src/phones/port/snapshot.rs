//! A phone as clients see it, with the JSON that shows it.
//!
//! An adapter returns the same [`DeviceSnapshot`] until something that a client can see has
//! changed. So the JSON is made once per visible change. The time of the reading is not part of it.

use super::reading::DeviceReading;
use crate::phones::contract::{Device, DeviceDetail};
use std::ops::Deref;
use std::sync::{Arc, LazyLock};
use toolwarrant::rendered::{Prepared, RenderBudget};

/// The most bytes that the JSON of all phones takes in this process, in both forms in which answers
/// contain it: about 320 for a phone in a list and 950 for its detail. JSON beyond it is made for
/// each answer. Each phone that was ever seen takes about 560 bytes more.
pub const RENDERED_MAX: usize = 256 << 20;

static BUDGET: LazyLock<Arc<RenderBudget>> = LazyLock::new(|| Arc::new(RenderBudget::new(RENDERED_MAX)));

/// A device snapshot with its prepared JSON. Dereferences to the snapshot.
#[derive(Debug)]
pub struct DeviceSnapshot {
    /// The phone as it was read.
    pub snapshot: DeviceReading,
    /// The JSON of the phone in a list.
    pub row: Prepared<Device>,
    /// The JSON of the result of get_device.
    pub detail: Prepared<DeviceDetail>,
}

impl From<DeviceReading> for DeviceSnapshot {
    fn from(snapshot: DeviceReading) -> Self {
        Self { snapshot, row: Prepared::within(&BUDGET), detail: Prepared::within(&BUDGET) }
    }
}

impl Deref for DeviceSnapshot {
    type Target = DeviceReading;
    fn deref(&self) -> &DeviceReading {
        &self.snapshot
    }
}

/// Ignores whether the JSON was made yet.
impl PartialEq for DeviceSnapshot {
    fn eq(&self, other: &Self) -> bool {
        self.snapshot == other.snapshot
    }
}
