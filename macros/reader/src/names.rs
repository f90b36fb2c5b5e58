//! Names: their spelling on the wire and in Rust.

/// Spells `set_proxy`, `set-proxy` and `setProxy` as `SetProxy`.
#[must_use]
pub fn pascal(name: &str) -> String {
    let capital = |word: &str| {
        let mut chars = word.chars();
        chars.next().map(|first| first.to_ascii_uppercase().to_string() + chars.as_str()).unwrap_or_default()
    };
    snake(name).split('_').map(capital).collect()
}

/// Spells `SetProxy`, `set-proxy` and `setProxy` as `set_proxy`. No name in Rust begins with a
/// digit, so `2d` is spelt `n2d`.
#[must_use]
pub fn snake(name: &str) -> String {
    let mut out = if name.starts_with(|c: char| c.is_ascii_digit()) { "n".to_owned() } else { String::new() };
    let mut chars = name.chars().peekable();
    let mut before = '_';
    while let Some(c) = chars.next() {
        let begins = c.is_ascii_uppercase()
            && (before.is_ascii_lowercase()
                || before.is_ascii_digit()
                || (before.is_ascii_uppercase() && chars.peek().is_some_and(char::is_ascii_lowercase)));
        if begins || (c == '-' && before != '_') {
            out.push('_');
        }
        if c != '-' {
            out.push(c.to_ascii_lowercase());
        }
        before = if c == '-' { '_' } else { c };
    }
    out
}

/// Returns true for a name on the wire that every provider takes.
pub(crate) fn is_wire(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
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

#[must_use]
pub fn is_keyword(name: &str) -> bool {
    const KEYWORDS: &str = "as async await box break const continue crate do dyn else enum extern false final fn for gen if \
        impl in let loop macro match mod move mut override priv pub ref return self static struct super trait true try \
        type typeof unsafe unsized use virtual where while yield abstract become";
    KEYWORDS.split_whitespace().any(|keyword| keyword == name)
}

/// Windows keeps these names for itself, so that no file can have one there.
const OF_WINDOWS: &str = "aux con nul prn com0 com1 com2 com3 com4 com5 com6 com7 com8 com9 lpt0 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 \
    lpt7 lpt8 lpt9";

/// Returns a help if no file can have the name on Windows.
pub(crate) fn refuse_for_windows(name: &str) -> Option<String> {
    let is_kept = OF_WINDOWS.split_whitespace().any(|kept| kept == name);
    is_kept.then(|| format!("choose another: no file can have these names on Windows: {OF_WINDOWS}"))
}
