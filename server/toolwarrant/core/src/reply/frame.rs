//! What stands around the JSON of a result in the body that leaves. Knows no transport.

/// How a transport frames the JSON of a result.
#[derive(Clone, Copy, Debug)]
pub enum Frame<'a> {
    /// The JSON alone.
    Plain,
    /// The JSON inside a JSON string and, where there is something `between`, as it is behind that.
    Text {
        /// What stands before the JSON, in parts; the last one ends with the opening quotation mark.
        open: [&'a str; 3],
        /// What stands between the two forms. It begins with the closing quotation mark, as `close` does where there is none.
        between: Option<&'a str>,
        /// What stands behind.
        close: &'a str,
    },
}

impl Frame<'_> {
    /// Writes a body of exactly its size. `quote` appends the JSON as it stands inside a string, which is `quoted` bytes long.
    pub(super) fn around(self, plain: &[u8], quoted: usize, quote: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let Self::Text { open, .. } = self else { return plain.to_vec() };
        let open: usize = open.iter().map(|part| part.len()).sum();
        let mut body = Vec::with_capacity(open + quoted + self.close_len(plain));
        self.open(&mut body);
        quote(&mut body);
        self.close(&mut body, plain);
        body
    }

    /// Appends what stands before the JSON.
    pub(super) fn open(self, body: &mut Vec<u8>) {
        if let Self::Text { open, .. } = self {
            open.into_iter().for_each(|part| body.extend_from_slice(part.as_bytes()));
        }
    }

    /// Appends what stands behind the quoted JSON.
    pub(super) fn close(self, body: &mut Vec<u8>, plain: &[u8]) {
        let Self::Text { open: _, between, close } = self else { return };
        if let Some(between) = between {
            body.extend_from_slice(between.as_bytes());
            body.extend_from_slice(plain);
        }
        body.extend_from_slice(close.as_bytes());
    }

    /// The length of what [`Self::close`] appends.
    pub(super) fn close_len(self, plain: &[u8]) -> usize {
        let Self::Text { open: _, between, close } = self else { return 0 };
        between.map_or(0, |between| between.len() + plain.len()) + close.len()
    }
}
