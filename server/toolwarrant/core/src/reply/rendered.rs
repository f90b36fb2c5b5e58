//! Values that are serialised once, for many answers, within a budget of bytes.

use super::frame::Frame;
use super::{Form, Reply};
use serde::Serialize;
use serde::ser::Error;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use toolwarrant_base::bytes::{quote, quote_len};
use toolwarrant_base::text::Json;

/// A value as JSON, in both forms that an answer uses: plain, and escaped for a place inside a JSON
/// string.
pub struct Rendered<T> {
    /// The plain form, then the escaped form. Empty if the value cannot be written as JSON, which
    /// is logged.
    both: Json,
    /// The length of the plain form.
    plain: usize,
    of: PhantomData<fn() -> T>,
}

impl<T: Serialize> Rendered<T> {
    /// Serialises a value. If it cannot be written as JSON, every reply with it fails.
    pub fn of(value: &T) -> Self {
        let plain = Json::of(value).unwrap_or_else(|error| {
            tracing::error!(%error, "a value could not be rendered");
            Json::default()
        });
        let mut both = Json::with_capacity(plain.bytes.len() + quote_len(&plain.bytes), plain.has_secret);
        both.bytes.extend_from_slice(&plain.bytes);
        quote(&plain.bytes, &mut both.bytes);
        Self { both, plain: plain.bytes.len(), of: PhantomData }
    }

    /// Makes a reply from it.
    pub fn reply<'a>(&self, frame: impl Into<Frame<'a>>) -> Reply<T> {
        if self.is_empty() {
            return Reply(Form::Unwritable(serde_json::Error::custom("a value could not be rendered")));
        }
        let quoted = self.json_string();
        let bytes = frame.into().around(self.plain(), quoted.len(), |body| body.extend_from_slice(quoted));
        Reply(Form::Written(Json { bytes, has_secret: self.has_secret() }.into()))
    }
}

impl<T> Rendered<T> {
    /// Returns the bytes that it holds, of both forms.
    #[must_use]
    pub fn len(&self) -> usize {
        self.both.bytes.len()
    }

    /// Returns true if the value could not be written as JSON.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn plain(&self) -> &[u8] {
        &self.both.bytes[..self.plain]
    }

    pub(super) fn json_string(&self) -> &[u8] {
        &self.both.bytes[self.plain..]
    }

    pub(super) fn has_secret(&self) -> bool {
        self.both.has_secret
    }
}

impl<T> fmt::Debug for Rendered<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.both.fmt(f)
    }
}

/// The bytes that [`Prepared`] values may hold together.
#[derive(Debug)]
pub struct RenderBudget {
    pub(super) left: AtomicUsize,
}

impl RenderBudget {
    /// Allows this many bytes.
    #[must_use]
    pub const fn new(bytes: usize) -> Self {
        Self { left: AtomicUsize::new(bytes) }
    }

    /// Takes bytes. If fewer are left, takes none and returns false.
    fn take(&self, bytes: usize) -> bool {
        self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.left.fetch_add(bytes, Relaxed);
    }
}

/// A result, or a part of one, that many calls share. It is rendered on first use and stored while
/// its budget has room.
#[derive(Debug)]
pub struct Prepared<T> {
    kept: OnceLock<Rendered<T>>,
    budget: Arc<RenderBudget>,
}

impl<T> Prepared<T> {
    /// Prepares a value whose bytes are taken from this budget.
    #[must_use]
    pub fn within(budget: &Arc<RenderBudget>) -> Self {
        Self { kept: OnceLock::new(), budget: Arc::clone(budget) }
    }
}

impl<T: Serialize> Prepared<T> {
    /// Makes a reply from it. The first call makes the value with `make`. While the budget has no
    /// room, every call does.
    pub fn reply<'a>(&self, frame: impl Into<Frame<'a>>, make: impl FnOnce() -> T) -> Reply<T> {
        self.render(make).reply(frame)
    }

    /// Returns it for a [`ListWriter`](super::ListWriter). It is made in the same way as for
    /// [`Self::reply`].
    pub fn render(&self, make: impl FnOnce() -> T) -> Ready<'_, T> {
        if let Some(kept) = self.kept.get() {
            return Ready::Kept(kept);
        }
        let made = Rendered::of(&make());
        let length = made.len();
        if !self.budget.take(length) {
            return Ready::Made(made);
        }
        let mut first = false;
        let kept = self.kept.get_or_init(|| {
            first = true;
            made
        });
        if !first {
            self.budget.give_back(length);
        }
        Ready::Kept(kept)
    }
}

impl<T> Drop for Prepared<T> {
    fn drop(&mut self) {
        if let Some(kept) = self.kept.get() {
            self.budget.give_back(kept.len());
        }
    }
}

/// A rendered value that is stored, or was made for one answer. Dereferences to it.
#[derive(Debug)]
pub enum Ready<'a, T> {
    /// It is stored.
    Kept(&'a Rendered<T>),
    /// It was made for one answer.
    Made(Rendered<T>),
}

impl<T> Deref for Ready<'_, T> {
    type Target = Rendered<T>;
    fn deref(&self) -> &Rendered<T> {
        match self {
            Self::Kept(kept) => kept,
            Self::Made(made) => made,
        }
    }
}
