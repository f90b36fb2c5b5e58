//! What any service needs, whatever its contract is about and whatever carries its requests.
//!
//! [`pipeline`] holds the order in which a call is checked. [`catalogue`] is the contract as the generator writes it. [`handler`]
//! has the types that handlers use. This crate knows no transport, no database and no command line.

pub mod access;
pub mod advice;
pub mod args;
pub mod audit;
pub mod catalogue;
pub mod clock;
pub mod counts;
pub mod failure;
#[doc(hidden)]
pub mod generated;
pub mod handler;
pub mod hangup;
pub mod hex;
pub mod keyring;
pub mod limit;
pub mod nonces;
pub mod permissions;
pub mod pipeline;
pub mod random;
pub mod reading;
pub mod registry;
pub mod reply;
pub mod report;
pub mod revision;
pub mod shards;
pub mod store;
pub mod tasks;
pub mod text;
pub mod wording;

pub use clock::Timestamp;

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// A future behind a pointer, for traits that are used as objects.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Runs `work`. Returns `None` on panic; the panic hook has logged it.
pub async fn survive<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(Poll::Ready(done)) => Poll::Ready(Some(done)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(_) => Poll::Ready(None),
    })
    .await
}
