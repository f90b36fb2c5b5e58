//! A response body in three pieces, so that a long piece that many responses share is sent without copying it.

use crate::edge::AnswerBody;
use bytes::Bytes;
use zeroize::Zeroizing;

/// A shared piece below this size costs less to copy than to send as a piece of its own.
const COPY_BELOW: usize = 4 * 1024;

/// The bytes of one response. The middle piece may be shared with other responses.
#[derive(Debug)]
pub(super) struct Spliced {
    head: Vec<u8>,
    shared: Bytes,
    tail: Bytes,
    /// Whether a secret is in it, so that what is its own is wiped once it has been sent.
    has_secret: bool,
}

impl Spliced {
    pub(super) fn new(head: [&str; 3], shared: &Bytes, tail: &[&str]) -> Self {
        if shared.len() >= COPY_BELOW {
            let (head, tail) = (head.concat().into(), tail.concat().into());
            return Self { head, shared: shared.clone(), tail, has_secret: false };
        }
        let length = |parts: &[&str]| parts.iter().map(|part| part.len()).sum::<usize>();
        let mut whole = Vec::with_capacity(length(&head) + shared.len() + length(tail));
        head.iter().for_each(|part| whole.extend_from_slice(part.as_bytes()));
        whole.extend_from_slice(shared);
        tail.iter().for_each(|part| whole.extend_from_slice(part.as_bytes()));
        whole.into()
    }

    /// Says whether a secret is in it.
    pub(super) fn with_secret(self, has_secret: bool) -> Self {
        Self { has_secret, ..self }
    }

    pub(super) fn has_secret(&self) -> bool {
        self.has_secret
    }

    /// The length of the whole response, in bytes.
    pub(super) fn length(&self) -> usize {
        self.head.len() + self.shared.len() + self.tail.len()
    }

    /// Appends the whole response to `out`.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let Self { head, shared, tail, has_secret: _ } = self;
        for piece in [head, &**shared, tail] {
            out.extend_from_slice(piece);
        }
    }
}

impl From<Vec<u8>> for Spliced {
    fn from(head: Vec<u8>) -> Self {
        Self { head, shared: Bytes::new(), tail: Bytes::new(), has_secret: false }
    }
}

/// Bytes that are wiped with their last reference.
pub(super) fn wiped(bytes: Vec<u8>) -> Bytes {
    Bytes::from_owner(Zeroizing::new(bytes))
}

impl From<Spliced> for AnswerBody {
    fn from(Spliced { head, shared, tail, has_secret }: Spliced) -> Self {
        let head = if has_secret { wiped(head) } else { head.into() };
        [head, shared, tail].into()
    }
}
