//! The rules for the name of an application.
//!
//! People and scripts refer to an application by its name or its id, and lists and logs show its
//! name. So a name is a short text without hidden characters, and cannot look like an id.

use toolwarrant_base::text::deceives;

/// Longest name of an application, in characters.
pub const APPLICATION_NAME_MAX: usize = 64;

/// The prefix of every application id. No name begins with it.
pub(super) const ID_PREFIX: &str = "app_";

/// Returns true if an application may have this name: 1 to [`APPLICATION_NAME_MAX`] printable
/// characters, without a space at either end, not beginning like an id, and not ending as the shown
/// name of a deleted application does.
#[must_use]
pub fn may_name_application(name: &str) -> bool {
    let printable = |c: char| c == ' ' || !(c.is_whitespace() || deceives(c));
    (1..=APPLICATION_NAME_MAX).contains(&name.chars().count())
        && name.chars().all(printable)
        && name.trim_matches(' ') == name
        && !name.starts_with(ID_PREFIX)
        && !(name.contains(" (deleted ") && name.ends_with(')'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_shows_all_of_itself_and_is_no_id() {
        let longest = "é".repeat(APPLICATION_NAME_MAX);
        for name in ["a", "demo-read", "Mrs. O'Hara & co (2)", "日本", "नमस्ते", "my app_1", "App_1", &longest]
        {
            assert!(may_name_application(name), "{name}");
        }
        let too_long = "x".repeat(APPLICATION_NAME_MAX + 1);
        for name in [
            "",
            " ",
            " a",
            "a ",
            "a\nb",
            "a\tb",
            "a\u{1b}[31m",
            "a\u{9b}0m",
            "a\u{a0}b",
            "a\u{202e}b",
            "a\u{200b}",
            "a\u{7f}",
            "\u{feff}a",
            "app_",
            "app_0123456789abcdef",
            "shop (deleted 2026-11-24)",
            &too_long,
        ] {
            assert!(!may_name_application(name), "{name:?}");
        }
    }
}
