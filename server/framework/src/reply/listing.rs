//! Results that are lists, joined of items that are rendered already.

use super::frame::{Frame, quote, quoted_len};
use super::{Form, Rendered, Reply};
use crate::text::Json;
use serde::Serialize;
use serde::ser::Error;
use std::marker::PhantomData;
use std::ops::Deref;

/// A result whose first field is a list.
pub trait ListResult: Serialize {
    /// What the list holds.
    type Item;
    /// Its JSON up to the first item.
    const OPEN: &'static str;
}

/// What is reserved for all but the items, in bytes.
const AROUND_ITEMS: usize = 1 << 10;

/// A result that is joined of rendered items: lengths, and copies into one body.
#[derive(Debug)]
pub struct Listing<'a, L> {
    frame: Frame<'a>,
    /// The body up to the last item and a comma; `None` if the frame has the JSON only as it is.
    quoted: Option<Json>,
    /// The JSON up to the last item and a comma; `None` if the frame has it only inside a string.
    plain: Option<Json>,
    /// Whether an item could not be written as JSON.
    unwritable: bool,
    of: PhantomData<fn() -> L>,
}

impl<'a, L: ListResult> Listing<'a, L> {
    /// Begins the answer to a call.
    pub fn begin(frame: impl Into<Frame<'a>>) -> Self {
        let frame = frame.into();
        let (quoted, plain) = match frame {
            Frame::Plain => (false, true),
            Frame::Text { between, .. } => (true, between.is_some()),
        };
        let [quoted, plain] = [quoted, plain].map(|wanted| wanted.then(Json::default));
        Self { frame, quoted, plain, unwritable: false, of: PhantomData }
    }

    /// Appends items.
    pub fn extend(&mut self, items: &[impl Deref<Target = Rendered<L::Item>>]) {
        let Self { frame, quoted, plain, unwritable, of: _ } = self;
        let has_secret = items.iter().any(|item| item.has_secret());
        let lengths = items.iter().map(|item| [item.quoted().len() + 1, item.plain().len() + 1]);
        let [in_quotes, as_is] = lengths.fold([0, 0], |[quoted, plain], [q, p]| [quoted + q, plain + p]);
        *unwritable |= items.iter().any(|item| item.is_empty());
        if let Some(quoted) = quoted {
            quoted.reserve(in_quotes + plain.as_ref().map_or(0, |_| as_is) + AROUND_ITEMS, has_secret);
            if quoted.bytes.is_empty() {
                frame.open(&mut quoted.bytes);
                quote(L::OPEN.as_bytes(), &mut quoted.bytes);
            }
            items.iter().for_each(|item| push(quoted, item.quoted()));
        }
        if let Some(plain) = plain {
            plain.reserve(as_is + AROUND_ITEMS, has_secret);
            if plain.bytes.is_empty() {
                plain.bytes.extend_from_slice(L::OPEN.as_bytes());
            }
            items.iter().for_each(|item| push(plain, item.plain()));
        }
    }

    /// Returns the result: `rest`, whose list is empty, with the items in it.
    pub fn finish(mut self, rest: L) -> Reply<L> {
        let rest = match Json::of(&rest) {
            Ok(rest) => rest,
            Err(error) => return Reply(Form::Unwritable(error)),
        };
        let tail = rest.bytes.strip_prefix(L::OPEN.as_bytes()).filter(|tail| tail.starts_with(b"]"));
        debug_assert!(tail.is_some(), "`rest` has items of its own");
        let Some(tail) = tail.filter(|_| !self.unwritable) else {
            return Reply(Form::Unwritable(serde_json::Error::custom("a list could not be joined")));
        };
        self.extend(&[] as &[&Rendered<L::Item>]);
        let Self { frame, quoted, mut plain, unwritable: _, of: _ } = self;
        if let Some(plain) = &mut plain {
            plain.reserve(tail.len(), rest.has_secret);
            plain.bytes.pop_if(|last| *last == b',');
            plain.bytes.extend_from_slice(tail);
        }
        let Some(mut body) = quoted else { return Reply(Form::Written(plain.unwrap_or_default().into())) };
        let plain = plain.as_ref().map_or(&[][..], |plain| &plain.bytes);
        body.reserve(quoted_len(tail) + frame.close_len(plain), rest.has_secret);
        body.bytes.pop_if(|last| *last == b',');
        quote(tail, &mut body.bytes);
        frame.close(&mut body.bytes, plain);
        Reply(Form::Written(body.into()))
    }
}

fn push(out: &mut Json, item: &[u8]) {
    out.bytes.extend_from_slice(item);
    out.bytes.push(b',');
}
