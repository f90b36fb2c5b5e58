//! The row of a phone: the platform's data, and the value that the adapter made of it.

use crate::phones::port::PlatformName;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::net::IpAddr;
use std::ops::Deref;
use std::time::Duration;
use toolwarrant::Timestamp;

/// The greatest age of a row whose state is shown, from the start of its reading.
pub const SHOWN_FOR: Duration = Duration::from_mins(1);

/// Returns true if the state may be shown. Clients see an older state as `unknown`.
#[must_use]
pub fn is_current(read_at: Timestamp, now: Timestamp) -> bool {
    now.since(read_at) <= SHOWN_FOR
}

/// The platform's data about one phone, as stored.
pub trait Row: Clone + PartialEq + fmt::Debug + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Made by the adapter. It stays until the platform returns other data.
    type Made: Default + fmt::Debug + Send + Sync;

    /// Returns the platform's id of the phone, which may pass to another phone.
    fn code(&self) -> &str;

    /// Returns an id that stays when the code changes.
    fn serial(&self) -> Option<String>;

    /// Returns the platform's own name of the phone behind the id. Proofs and the own address hold
    /// under it alone.
    fn name(&self) -> &str {
        self.code()
    }

    fn public_address(&self) -> Option<IpAddr> {
        None
    }

    /// Returns true if the phone may make requests from an address that nobody has read. False for
    /// a platform that shows addresses.
    fn has_answered(&self) -> bool {
        false
    }

    /// Returns the id of the phone, unless another phone has it. A phone is left out if it has
    /// other characters than ids.
    fn plain_id(&self, platform: &PlatformName) -> String {
        format!("{platform}-{}", self.code().to_ascii_lowercase())
    }
}

#[derive(Debug)]
pub struct KeptRow<R: Row> {
    pub(super) row: R,
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
