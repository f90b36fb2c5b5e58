//! The row of a phone: what its platform told of it, and what its adapter made of that.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::Timestamp;

/// Greatest age of a row whose state is shown, counted from the beginning of its reading.
pub const SHOWN_FOR: Duration = Duration::from_mins(1);

/// Whether the state in a row that was read then may still be shown. Clients see an older one as `unknown`.
#[must_use]
pub fn is_current(read_at: Timestamp, now: Timestamp) -> bool {
    now.since(read_at) <= SHOWN_FOR
}

/// What a platform tells of one phone. It is written to the roster's file.
pub trait Row: Clone + PartialEq + fmt::Debug + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// What its adapter makes of a row. It stays with the row until the platform tells something else of the phone.
    type Made: Default + fmt::Debug + Send + Sync;

    /// The platform's own id of the phone, as it is sent to the platform. It may pass to another phone.
    fn code(&self) -> &str;

    /// What stays with the phone while its code changes; `None` where the platform has nothing of this kind.
    fn seat(&self) -> Option<String>;
}

/// The platform says that a phone has another code than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recoded {
    /// The code before.
    pub from: String,
    /// The code since.
    pub to: String,
}

/// A row, with what was made of it. Dereferences to the row.
#[derive(Debug)]
pub struct KeptRow<R: Row> {
    pub(super) row: R,
    /// What was made of it.
    pub made: R::Made,
}

impl<R: Row> From<R> for KeptRow<R> {
    fn from(row: R) -> Self {
        Self { row, made: R::Made::default() }
    }
}

impl<R: Row> Deref for KeptRow<R> {
    type Target = R;
    fn deref(&self) -> &R {
        &self.row
    }
}

/// What is shown of a phone: its row, and when the reading of that began.
pub(super) type Phone<R> = (Arc<KeptRow<R>>, Timestamp);
