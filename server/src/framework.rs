//! The framework: everything that any contract needs, and nothing that only one does.
//!
//! [`pipeline`] is the spine: the order in which a call is checked. [`catalogue`] is what the generator writes down,
//! [`handler`] what a handler is given, [`transport`] how bytes come and go. No word here belongs to a particular resource.

pub mod access;
pub mod args;
pub mod audit;
pub mod catalogue;
pub mod failure;
#[doc(hidden)]
pub mod generated;
pub mod handler;
pub mod limit;
pub mod pipeline;
pub mod registry;
pub mod reply;
pub mod tasks;
pub mod text;
pub mod transport;

pub use crate::clock::Timestamp;

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// A future behind a pointer, for traits that are used as objects.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Runs `work`; `None` if it panicked, of which the panic hook has told.
pub(crate) async fn survive<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(Poll::Ready(done)) => Poll::Ready(Some(done)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(_) => Poll::Ready(None),
    })
    .await
}
