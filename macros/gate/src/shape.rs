//! The values that a type admits, in a form that can be compared. A task stores its arguments in
//! it.

#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize, serde::Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Shape {
    /// `string`, `text`, `integer`, `number`, `boolean`, `timestamp`, `enum`, `map`, `json`, or the
    /// parts of an object.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) list: bool,
    pub(crate) optional: bool,
    /// Null has a meaning of its own.
    pub(crate) nullable: bool,
    /// Strings: fewest characters, with the prefix.
    pub(crate) min: Option<i64>,
    /// Strings: most characters, with the prefix.
    pub(crate) max: Option<i64>,
    /// Strings: what they begin with. Maps: the type of their values.
    pub(crate) prefix: String,
    /// Numbers: smallest.
    pub(crate) least: Option<f64>,
    /// Numbers: largest.
    pub(crate) most: Option<f64>,
    /// Ranges after the prefix. Empty: any character.
    pub(crate) charset: Vec<String>,
    pub(crate) values: Vec<String>,
}

impl Shape {
    pub(crate) fn admits(&self, former: &Self) -> bool {
        let within = self.min.is_none_or(|min| former.min.is_some_and(|former| min <= former))
            && self.max.is_none_or(|max| former.max.is_some_and(|former| max >= former));
        let admitted = match (&*self.kind, &*former.kind) {
            ("integer" | "text" | "json", "integer" | "text" | "json") if self.kind == former.kind => within,
            ("text", "string") => within,
            ("map", "map") => within && self.prefix == former.prefix,
            ("number", "number") => {
                self.least.is_none_or(|least| former.least.is_some_and(|former| least <= former))
                    && self.most.is_none_or(|most| former.most.is_some_and(|former| most >= former))
            }
            ("enum", "enum") => former.values.iter().all(|value| self.values.contains(value)),
            ("string", "enum") => former.values.iter().all(|value| self.admits_text(value)),
            ("string", "string") => within && self.admits_beginnings(former) && self.admits_rests(former),
            (kind, former) => kind == former && !kind.is_empty(),
        };
        self.list == former.list && (self.nullable || !former.nullable) && admitted
    }

    fn admits_beginnings(&self, former: &Self) -> bool {
        let longer = former.prefix.strip_prefix(&*self.prefix).is_some_and(|rest| self.admits_chars(rest.chars()));
        // The other has a shorter prefix, and no choice of the characters after it.
        let is_forced = |next: char| former.ranges().all(|range| range == (next, next)) && !former.charset.is_empty();
        let is_long_enough =
            former.min.is_some_and(|min| usize::try_from(min).is_ok_and(|min| min >= self.prefix.len()));
        let shorter = self.prefix.strip_prefix(&*former.prefix).is_some_and(|rest| rest.chars().all(is_forced));
        longer || (shorter && is_long_enough)
    }

    fn admits_rests(&self, former: &Self) -> bool {
        let prefix = self.prefix.len().max(former.prefix.len());
        let has_rest = former.max.is_none_or(|max| usize::try_from(max).is_ok_and(|max| max > prefix));
        let is_bounded = !former.charset.is_empty();
        let bounded = || is_bounded && self.admits_chars(former.ranges().flat_map(|(from, to)| from..=to));
        !has_rest || self.charset.is_empty() || bounded()
    }

    fn admits_text(&self, text: &str) -> bool {
        let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        self.min.is_none_or(|min| min <= length)
            && self.max.is_none_or(|max| max >= length)
            && text.strip_prefix(&*self.prefix).is_some_and(|rest| self.admits_chars(rest.chars()))
    }

    fn admits_chars(&self, mut chars: impl Iterator<Item = char>) -> bool {
        self.charset.is_empty() || chars.all(|char| self.ranges().any(|(from, to)| (from..=to).contains(&char)))
    }

    fn ranges(&self) -> impl Iterator<Item = (char, char)> {
        self.charset.iter().filter_map(|range| Some((range.chars().next()?, range.chars().next_back()?)))
    }
}
