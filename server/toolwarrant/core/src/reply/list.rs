//! Results that are lists, joined from items that are already rendered.

use super::frame::Frame;
use super::recipient::{Recipient, TargetIds};
use super::{Form, Rendered, Reply};
use serde::Serialize;
use serde::ser::Error;
use std::marker::PhantomData;
use std::mem;
use std::ops::Deref;
use toolwarrant_base::bytes::{quote, quote_len};
use toolwarrant_base::text::Json;

/// A result whose first field is a list.
pub trait ListResult: Serialize + TargetIds {
    type Item;
    /// Its JSON up to the first item.
    const OPEN: &'static str;
}

const AROUND_ITEMS: usize = 1 << 10;

/// Writes a result by copying rendered items into one body.
pub struct ListWriter<'a, L> {
    to: Recipient<'a>,
    /// Ends with the last item and a comma; `None` for a frame with plain JSON alone.
    quoted: Option<Json>,
    /// The same; `None` for a frame with JSON only inside a string.
    plain: Option<Json>,
    items: serde_json::Result<()>,
    of: PhantomData<fn() -> L>,
}

impl<'a, L: ListResult> ListWriter<'a, L> {
    /// Begins the answer to a call.
    pub fn begin(to: impl Into<Recipient<'a>>) -> Self {
        let to = to.into();
        let (quoted, plain) = match to.frame {
            Frame::Plain => (false, true),
            Frame::Text { between, .. } => (true, between.is_some()),
        };
        let [quoted, plain] = [quoted, plain].map(|wanted| wanted.then(Json::default));
        Self { to, quoted, plain, items: Ok(()), of: PhantomData }
    }

    /// Appends items.
    pub fn extend(&mut self, items: &[impl Deref<Target = Rendered<L::Item>>]) {
        let (mut in_quotes, mut as_is, mut has_secret) = (0, 0, false);
        for item in items {
            in_quotes += item.json_string().len() + 1;
            as_is += item.plain().len() + 1;
            has_secret |= item.has_secret();
            if item.is_empty() {
                self.items = Err(serde_json::Error::custom("a list could not be joined"));
            }
        }
        if self.items.is_ok() && self.to.sight.is_some() {
            self.items = items.iter().try_for_each(|item| self.to.check(&**item));
        }
        self.reserve(in_quotes, as_is, has_secret);
        if let Some(quoted) = &mut self.quoted {
            items.iter().for_each(|item| push(quoted, item.json_string()));
        }
        if let Some(plain) = &mut self.plain {
            items.iter().for_each(|item| push(plain, item.plain()));
        }
    }

    /// Returns the result: `rest`, whose list is empty, with the items in it.
    pub fn finish(mut self, rest: L) -> Reply<L> {
        let items = mem::replace(&mut self.items, Ok(()));
        let rest = match items.and_then(|()| self.to.check(&rest)).and_then(|()| Json::of(&rest)) {
            Ok(rest) => rest,
            Err(error) => return Reply(Form::Unwritable(error)),
        };
        let tail = rest.bytes.strip_prefix(L::OPEN.as_bytes()).filter(|tail| tail.starts_with(b"]"));
        debug_assert!(tail.is_some(), "`rest` has items of its own");
        let Some(tail) = tail else {
            return Reply(Form::Unwritable(serde_json::Error::custom("a list could not be joined")));
        };
        self.reserve(quote_len(tail) + self.to.frame.close_len(&[]), tail.len(), rest.has_secret);
        let Self { to: Recipient { frame, .. }, quoted, mut plain, items: _, of: _ } = self;
        if let Some(plain) = &mut plain {
            plain.bytes.pop_if(|last| *last == b',');
            plain.bytes.extend_from_slice(tail);
        }
        let Some(mut body) = quoted else { return Reply(Form::Written(plain.unwrap_or_default().into())) };
        body.bytes.pop_if(|last| *last == b',');
        quote(tail, &mut body.bytes);
        let plain = plain.as_ref().map_or(&[][..], |plain| &plain.bytes);
        // After several parts of a list there may be too little room left, and growing must not
        // leave a copy of a secret behind.
        body.reserve(frame.close_len(plain), false);
        frame.close(&mut body.bytes, plain);
        Reply(Form::Written(body.into()))
    }

    /// Makes room. The first time, it writes the text before the items.
    fn reserve(&mut self, in_quotes: usize, as_is: usize, has_secret: bool) {
        let Self { to: Recipient { frame, .. }, quoted, plain, items: _, of: _ } = self;
        let around = |form: &Json| if form.bytes.is_empty() { AROUND_ITEMS } else { 0 };
        if let Some(quoted) = quoted {
            let again = plain.as_ref().map_or(0, |plain| as_is + around(plain));
            quoted.reserve(in_quotes + again + around(quoted), has_secret);
            if quoted.bytes.is_empty() {
                frame.open(&mut quoted.bytes);
                quote(L::OPEN.as_bytes(), &mut quoted.bytes);
            }
        }
        if let Some(plain) = plain {
            plain.reserve(as_is + around(plain), has_secret);
            if plain.bytes.is_empty() {
                plain.bytes.extend_from_slice(L::OPEN.as_bytes());
            }
        }
    }
}

fn push(out: &mut Json, item: &[u8]) {
    out.bytes.extend_from_slice(item);
    out.bytes.push(b',');
}
