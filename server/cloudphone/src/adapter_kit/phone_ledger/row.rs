//! The row of a phone: the data that the platform returned, and the value that the adapter made of
//! it.

use crate::phones::port::PlatformName;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::Timestamp;

/// The greatest age of a row whose state is shown, counted from the start of its reading.
pub const SHOWN_FOR: Duration = Duration::from_mins(1);

/// Returns true if the state in a row that was read at `read_at` may still be shown. Clients see an
/// older one as `unknown`.
#[must_use]
pub fn is_current(read_at: Timestamp, now: Timestamp) -> bool {
    now.since(read_at) <= SHOWN_FOR
}

/// The data that a platform returns about one phone. It is stored in the ledger.
pub trait Row: Clone + PartialEq + fmt::Debug + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The value that the adapter makes of a row. It stays with the row until the platform returns
    /// other data about the phone.
    type Made: Default + fmt::Debug + Send + Sync;

    /// Returns the platform's own id of the phone, as sent to the platform. It may pass to another
    /// phone.
    fn code(&self) -> &str;

    /// Returns an id that stays with the phone when its code changes; `None` if the platform has no
    /// such id.
    fn serial(&self) -> Option<String>;

    /// Returns the address of the phone's requests, as the platform shows it. Default: `None`,
    /// which is right for a platform that shows none.
    fn public_address(&self) -> Option<IpAddr> {
        None
    }

    /// Returns true if the phone has ever answered, so that it may make requests from an address
    /// that nobody has read. Default: false, which is right for a platform that shows addresses.
    fn has_answered(&self) -> bool {
        false
    }

    /// Returns the id of the phone, unless another phone has it. Default: the name of the platform
    /// and the code, in lower case. A phone whose id has other characters than ids is left out.
    fn plain_id(&self, platform: &PlatformName) -> String {
        format!("{platform}-{}", self.code().to_ascii_lowercase())
    }
}

/// The platform's record that a phone's code has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recoded {
    /// The old code.
    pub from: String,
    /// The new code.
    pub to: String,
}

/// A row with the value that was made of it. Dereferences to the row.
#[derive(Debug)]
pub struct KeptRow<R: Row> {
    pub(super) row: R,
    /// The value that was made of it.
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

/// The data that is shown of a phone: its row, and the time when the reading of the row began.
pub(super) type ListedPhone<R> = (Arc<KeptRow<R>>, Timestamp);
