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
use toolwarrant_base::bytes::{quote, quoted_len};
use toolwarrant_base::text::Json;

/// A value as JSON, in both forms in which an answer has it: as it is, and as it stands inside a JSON string.
pub struct Rendered<T> {
    /// One form behind the other; empty if the value cannot be written as JSON, which is logged.
    both: Json,
    /// The length of the first.
    plain: usize,
    of: PhantomData<fn() -> T>,
}

impl<T: Serialize> Rendered<T> {
    /// Serialises a value. With one that cannot be written as JSON every reply fails.
    pub fn of(value: &T) -> Self {
        let plain = Json::of(value).unwrap_or_else(|error| {
            tracing::error!(%error, "a value could not be rendered");
            Json::default()
        });
        let mut both = Json::with_capacity(plain.bytes.len() + quoted_len(&plain.bytes), plain.has_secret);
        both.bytes.extend_from_slice(&plain.bytes);
        quote(&plain.bytes, &mut both.bytes);
        Self { both, plain: plain.bytes.len(), of: PhantomData }
    }

    /// Answers with it.
    pub fn reply<'a>(&self, frame: impl Into<Frame<'a>>) -> Reply<T> {
        if self.is_empty() {
            return Reply(Form::Unwritable(serde_json::Error::custom("a value could not be rendered")));
        }
        let quoted = self.quoted();
        let bytes = frame.into().around(self.plain(), quoted.len(), |body| body.extend_from_slice(quoted));
        Reply(Form::Written(Json { bytes, has_secret: self.has_secret() }.into()))
    }
}

impl<T> Rendered<T> {
    /// The bytes that it keeps, of both forms.
    #[must_use]
    pub fn len(&self) -> usize {
        self.both.bytes.len()
    }

    /// Whether the value could not be written as JSON.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn plain(&self) -> &[u8] {
        &self.both.bytes[..self.plain]
    }

    pub(super) fn quoted(&self) -> &[u8] {
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

/// The bytes that [`Prepared`] values may keep together.
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

    /// Takes bytes, or none if so many are not left.
    fn take(&self, bytes: usize) -> bool {
        self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.left.fetch_add(bytes, Relaxed);
    }
}

/// A result, or a part of one, that many calls share. It is rendered on first use and kept as far as its budget allows.
#[derive(Debug)]
pub struct Prepared<T> {
    kept: OnceLock<Rendered<T>>,
    budget: Arc<RenderBudget>,
}

impl<T> Prepared<T> {
    /// Prepares a value whose bytes are taken of this budget.
    #[must_use]
    pub fn within(budget: &Arc<RenderBudget>) -> Self {
        Self { kept: OnceLock::new(), budget: Arc::clone(budget) }
    }
}

impl<T: Serialize> Prepared<T> {
    /// Answers with it. The first call makes it with `make`, and so does each one while the budget has no room for it.
    pub fn reply<'a>(&self, frame: impl Into<Frame<'a>>, make: impl FnOnce() -> T) -> Reply<T> {
        self.rendered(make).reply(frame)
    }

    /// Returns it, for a [`ListWriter`](super::ListWriter). It is made as for [`Self::reply`].
    pub fn rendered(&self, make: impl FnOnce() -> T) -> Ready<'_, T> {
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

/// A rendered value that is kept, or was made for one answer. Dereferences to it.
#[derive(Debug)]
pub enum Ready<'a, T> {
    /// It is kept.
    Kept(&'a Rendered<T>),
    /// It is not.
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
