//! A page of the service, for people in a browser who hold a pass.

use crate::passes::Pass;
use bytes::Bytes;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::wording::Words;

/// A page that holders of a pass open. The framework serves its files to everybody, and passes on
/// requests of holders alone. A request ends with the right of its holder.
pub trait WebPage: Send + Sync + 'static {
    /// The path, such as `/door`. Everything else has a name below it.
    fn path(&self) -> &'static str;

    /// The files. The one with the empty name is the page itself.
    fn files(&self) -> &'static [PageFile];

    /// Answers a request of a holder. It may hold the answer for up to 25 s; it is dropped if the
    /// holder leaves or its right ends.
    fn answer<'a>(&'a self, pass: &'a Pass, request: PageRequest<'a>) -> BoxFuture<'a, Result<PageAnswer, PageError>>;
}

/// A file of a page.
#[derive(Clone, Copy, Debug)]
pub struct PageFile {
    /// Below the path of the page.
    pub name: &'static str,
    /// Its `Content-Type`.
    pub content_type: &'static str,
    /// Its content.
    pub text: &'static str,
}

/// A request of a holder.
#[derive(Clone, Copy, Debug)]
pub enum PageRequest<'a> {
    /// A GET.
    Read {
        /// Below the path of the page.
        name: &'a str,
        /// The text after the `?`, or nothing.
        query: &'a str,
    },
    /// A POST of JSON.
    Input {
        /// Below the path of the page.
        name: &'a str,
        /// At most 4 KiB.
        body: &'a [u8],
    },
}

/// An answer of a page.
#[derive(Clone, Debug)]
pub enum PageAnswer {
    /// Nothing to show.
    Nothing,
    /// Something to show.
    Content {
        /// Its `Content-Type`.
        content_type: &'static str,
        /// Its place among the others, in a header that is named after the request: `x-NAME`.
        number: Option<u64>,
        /// The content.
        body: Bytes,
    },
}

/// The reason that a page has no answer. The words are shown to people.
#[derive(Clone, Debug)]
pub enum PageError {
    /// There is nothing of this name.
    NoName,
    /// The request is malformed.
    Malformed(Words),
    /// The mode of the pass does not allow it.
    Forbidden(Words),
    /// There are too many requests of one holder, or too many holders.
    TooMany(Words),
    /// It is not possible at present.
    Unavailable(Words),
}
