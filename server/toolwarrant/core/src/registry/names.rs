//! The rules for the name of an application: short, without hidden characters, and not like an id,
//! because commands take either.

use toolwarrant_base::text::find_deceiving;

/// In characters.
pub const APPLICATION_NAME_MAX: usize = 64;

/// No name begins with it.
pub(super) const ID_PREFIX: &str = "app_";

/// Returns true if an application may have this name, which must not end as the shown name of a
/// deleted one.
#[must_use]
pub fn may_name_application(name: &str) -> bool {
    (1..=APPLICATION_NAME_MAX).contains(&name.chars().count())
        && !name.contains(|c: char| c != ' ' && c.is_whitespace())
        && find_deceiving(name).is_none()
        && name.chars().any(char::is_alphanumeric)
        && name.trim_matches(' ') == name
        && !name.starts_with(ID_PREFIX)
        && !is_like_id(name)
        && !(name.contains(" (deleted ") && name.ends_with(')'))
}

/// Ids of keys, tasks and acts are a word, `_`, and at least 16 hexadecimal digits at the end.
fn is_like_id(name: &str) -> bool {
    let Some((_, rest)) = name.split_once('_') else { return false };
    rest.len() >= 16 && rest.bytes().rev().take(16).all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_shows_all_of_itself_and_is_no_id() {
        let longest = "é".repeat(APPLICATION_NAME_MAX);
        for name in [
            "a",
            "demo-read",
            "Mrs. O'Hara & co (2)",
            "日本",
            "नमस्ते",
            "my app_1",
            "App_1",
            "گوشی\u{200c}ها",
            "می\u{64e}\u{200c}خواهم",
            "क्\u{200c}ष",
            "ශ්\u{200d}රී",
            &longest,
        ] {
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
            "a\u{200c}b",
            "گوشی\u{200c}",
            "دار\u{200c}ها",
            "گوشی\u{200c}\u{200c}ها",
            "گوشی\u{200d}ها",
            "क\u{200c}ष",
            "क्\u{200c}",
            "क्\u{200d}a",
            "\u{1f469}\u{200d}\u{1f467}",
            "a\u{7f}",
            "\u{feff}a",
            "..",
            "app_",
            "app_0123456789abcdef",
            "key_0123456789abcdef",
            "task_01a225ea0b68bce92dd15dc8bc73f9fd",
            "shop (deleted 2026-11-24)",
            &too_long,
        ] {
            assert!(!may_name_application(name), "{name:?}");
        }
    }
}
