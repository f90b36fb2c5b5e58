//! The base of the framework: time, randomness, text, secrets at rest, and state that threads
//! share. It knows no tool and no request. Start at [`clock`], [`text`] or [`keyring`].

pub mod bytes;
pub mod clock;
pub mod durable;
pub mod hangup;
pub mod hex;
pub mod keyring;
mod lock;
pub mod random;
pub mod secret_file;
pub mod text;
pub mod way;
pub mod wording;

pub use clock::Timestamp;
pub use lock::ignore_poison;
pub use toolwarrant_common::json;

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// A future behind a pointer, for traits that are used as objects.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Returns `None` if `work` panics, which the panic hook has logged.
pub async fn survive<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(Poll::Ready(done)) => Poll::Ready(Some(done)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(_) => Poll::Ready(None),
    })
    .await
}
