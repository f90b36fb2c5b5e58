//! The frame of a transport around the JSON of a result in the body of a response.

#[derive(Clone, Copy, Debug)]
pub enum Frame<'a> {
    Plain,
    /// The JSON inside a JSON string, in a text item of a list. If there is a text `between`, the
    /// plain JSON follows it.
    Text {
        /// In parts; the last one ends with the opening quotation mark.
        open: [&'a str; 3],
        /// More items, each after its comma.
        more: &'a str,
        /// An item before those, after its comma.
        body: &'a str,
        /// Follows the items, as `close` does without it.
        between: Option<&'a str>,
        close: &'a str,
    },
}

const TEXT_END: &str = r#""}"#;

const ITEMS_END: &str = "]";

impl<'a> Frame<'a> {
    /// Adds items after the text.
    pub(crate) fn with_more(mut self, items: &'a str) -> Self {
        if let Self::Text { more, .. } = &mut self {
            *more = items;
        }
        self
    }

    /// Has the item in place of the plain JSON.
    pub(super) fn with_body(self, item: &'a str) -> Self {
        match self {
            Self::Text { open, more, close, .. } => Self::Text { open, more, body: item, between: None, close },
            Self::Plain => Self::Plain,
        }
    }

    /// Writes a body of exactly its size. `quote` appends `quoted` bytes.
    pub(super) fn around(self, plain: &[u8], quoted: usize, quote: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let Self::Text { open, .. } = self else { return plain.to_vec() };
        let open: usize = open.iter().map(|part| part.len()).sum();
        let mut body = Vec::with_capacity(open + quoted + self.close_len(plain));
        self.open(&mut body);
        quote(&mut body);
        self.close(&mut body, plain);
        body
    }

    pub(super) fn open(self, body: &mut Vec<u8>) {
        if let Self::Text { open, .. } = self {
            open.into_iter().for_each(|part| body.extend_from_slice(part.as_bytes()));
        }
    }

    pub(super) fn close(self, body: &mut Vec<u8>, plain: &[u8]) {
        let Self::Text { open: _, more, body: item, between, close } = self else { return };
        [TEXT_END, item, more, ITEMS_END].into_iter().for_each(|part| body.extend_from_slice(part.as_bytes()));
        if let Some(between) = between {
            body.extend_from_slice(between.as_bytes());
            body.extend_from_slice(plain);
        }
        body.extend_from_slice(close.as_bytes());
    }

    pub(super) fn close_len(self, plain: &[u8]) -> usize {
        let Self::Text { open: _, more, body, between, close } = self else { return 0 };
        let items = TEXT_END.len() + body.len() + more.len() + ITEMS_END.len();
        items + between.map_or(0, |between| between.len() + plain.len()) + close.len()
    }
}
