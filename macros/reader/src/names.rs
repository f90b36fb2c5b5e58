//! Names: their spelling on the wire and in Rust.

/// Spells `set_proxy` as `SetProxy`.
#[must_use]
pub fn pascal(name: &str) -> String {
    let capital = |word: &str| {
        let mut chars = word.chars();
        chars.next().map(|first| first.to_ascii_uppercase().to_string() + chars.as_str()).unwrap_or_default()
    };
    name.split('_').map(capital).collect()
}

/// Spells `SetProxy` as `set_proxy`.
pub(crate) fn snake(name: &str) -> String {
    let mut out = String::new();
    for (at, c) in name.char_indices() {
        if c.is_ascii_uppercase() && at > 0 {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// Adapts an article also.
pub(crate) fn fill_resource(text: &str, resource: &str) -> String {
    let begins_with_vowel = resource.starts_with(['a', 'e', 'i', 'o']);
    let text = if begins_with_vowel { text.replace(" a {resource}", " an {resource}") } else { text.to_owned() };
    text.replace("{resource}", resource)
}

pub(crate) fn noun<'a>(resources: impl IntoIterator<Item = &'a str>) -> String {
    let mut names = resources.into_iter();
    match (names.next(), names.next()) {
        (Some(name), None) => name.replace('_', " "),
        _ => "target".to_owned(),
    }
}

pub(crate) fn is_snake(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('_')
        && !name.contains("__")
        && name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'))
}

pub(crate) fn is_pascal(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase()) && name.bytes().all(|b| b.is_ascii_alphanumeric())
}

pub(crate) fn is_keyword(name: &str) -> bool {
    const KEYWORDS: &str = "as async await box break const continue crate do dyn else enum extern false final fn for gen if \
        impl in let loop macro match mod move mut override priv pub ref return self static struct super trait true try \
        type typeof unsafe unsized use virtual where while yield abstract become";
    KEYWORDS.split_whitespace().any(|keyword| keyword == name)
}

/// Returns true for a name that Windows keeps for itself, so that no file can have it there.
pub(crate) fn is_of_windows(name: &str) -> bool {
    let is_port = |rest: &str| matches!(rest.as_bytes(), [b'0'..=b'9']);
    ["aux", "con", "nul", "prn"].contains(&name)
        || ["com", "lpt"].into_iter().filter_map(|kind| name.strip_prefix(kind)).any(is_port)
}

pub(crate) const OF_WINDOWS: &str =
    "Windows keeps the names aux, con, nul, prn, com0 to com9 and lpt0 to lpt9 for itself: choose another";
