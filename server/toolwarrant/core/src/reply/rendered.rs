//! Values that are serialised once, for many answers, within a budget of bytes.

use super::recipient::{Recipient, TargetIds, VisitId};
use super::{Form, Reply};
use serde::Serialize;
use serde::ser::Error;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::{fmt, slice};
use toolwarrant_base::bytes::{quote, quote_len};
use toolwarrant_base::text::Json;

/// A value as JSON, plain and escaped for a JSON string.
pub struct Rendered<T> {
    /// The plain form, then the escaped form. Empty if the value is no JSON.
    both: Json,
    plain: usize,
    ids: Ids,
    of: PhantomData<fn() -> T>,
}

type Id = (&'static str, Arc<str>);

/// Most values have one id, which needs no allocation.
enum Ids {
    One(Id),
    Many(Box<[Id]>),
}

impl From<Vec<Id>> for Ids {
    fn from(ids: Vec<Id>) -> Self {
        <[Id; 1]>::try_from(ids).map_or_else(|ids| Self::Many(ids.into()), |[id]| Self::One(id))
    }
}

impl Deref for Ids {
    type Target = [Id];
    fn deref(&self) -> &[Id] {
        match self {
            Self::One(id) => slice::from_ref(id),
            Self::Many(ids) => ids,
        }
    }
}

impl<T: Serialize + TargetIds> Rendered<T> {
    /// Serialises a value. If it cannot be written as JSON, every reply with it fails.
    pub fn of(value: &T) -> Self {
        let plain = Json::of(value).unwrap_or_else(|error| {
            tracing::error!(%error, "a value could not be rendered");
            Json::default()
        });
        let mut both = Json::with_capacity(plain.bytes.len() + quote_len(&plain.bytes), plain.has_secret);
        both.bytes.extend_from_slice(&plain.bytes);
        quote(&plain.bytes, &mut both.bytes);
        let mut ids = Vec::new();
        value.visit_ids(&mut |resource, id| ids.push((resource, Arc::clone(id))));
        Self { both, plain: plain.bytes.len(), ids: ids.into(), of: PhantomData }
    }

    /// Makes a reply from it.
    pub fn reply<'a>(&self, to: impl Into<Recipient<'a>>) -> Reply<T> {
        if self.is_empty() {
            return Reply(Form::Unwritable(serde_json::Error::custom("a value could not be rendered")));
        }
        let (to, quoted) = (to.into(), self.json_string());
        if let Err(error) = to.check(self) {
            return Reply(Form::Unwritable(error));
        }
        let bytes = to.frame.around(self.plain(), quoted.len(), |body| body.extend_from_slice(quoted));
        Reply(Form::Written(Json { bytes, has_secret: self.has_secret() }.into()))
    }
}

impl<T> Rendered<T> {
    /// Returns its size in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.both.bytes.len() + size_of_val(&*self.ids)
    }

    /// Returns true if the value could not be written as JSON.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.both.bytes.is_empty()
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

impl<T> TargetIds for Rendered<T> {
    fn visit_ids(&self, visit: VisitId<'_>) {
        self.ids.iter().for_each(|(resource, id)| visit(resource, id));
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

    fn take(&self, bytes: usize) -> bool {
        self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.left.fetch_add(bytes, Relaxed);
    }
}

/// A result, or a part of one, that many calls share: rendered on first use, and stored while its
/// budget has room.
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

impl<T: Serialize + TargetIds> Prepared<T> {
    /// Makes a reply. The first call makes the value. While the budget has no room, every call
    /// does.
    pub fn reply<'a>(&self, to: impl Into<Recipient<'a>>, make: impl FnOnce() -> T) -> Reply<T> {
        self.render(make).reply(to)
    }

    /// Returns it for a [`ListWriter`](super::ListWriter).
    pub fn render(&self, make: impl FnOnce() -> T) -> Ready<'_, T> {
        if let Some(kept) = self.kept.get() {
            return Ready::Kept(kept);
        }
        let made = Rendered::of(&make());
        let length = made.len();
        if !self.budget.take(length) {
            return Ready::Made(Arc::new(made));
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
    /// It was made for one answer. An `Arc` keeps the drop of a long list of stored values short,
    /// because its slow path is never inlined.
    Made(Arc<Rendered<T>>),
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
