//! The route of a tool under `/v1`.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    pub method: String,
    pub path: String,
}

impl Http {
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }

    /// Returns true if the arguments that are not in the path are in a body, not in the query.
    #[must_use]
    pub fn has_body(&self) -> bool {
        matches!(self.method.as_str(), "POST" | "PUT" | "PATCH")
    }
}
