//! Keeps the secrets of a write out of the texts in which an upstream answers.

use crate::executor::Write;
use crate::machine::Sent;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use toolwarrant_base::json;
use toolwarrant_base::text::{Secret, clean};
use toolwarrant_core::catalogue::Catalogue;

const CONCEALED: &str = "a text that repeats a secret of the call";

pub(super) fn conceal(catalogue: Option<&Catalogue>, write: &Write, mut sent: Sent) -> Sent {
    let secrets = catalogue.and_then(|catalogue| catalogue.tool(&write.tool)).map_or(&[][..], |tool| tool.secrets);
    if let Some(text) = sent.remark_mut()
        && repeats_secret(text.as_str(), secrets, write.arguments.expose())
    {
        *text = CONCEALED.into();
    }
    sent
}

/// Returns true if a text repeats one of these arguments, or is cut off within one.
fn repeats_secret(text: &str, secrets: &[&str], arguments: &str) -> bool {
    let Ok(arguments) = json::read::<BTreeMap<&str, &RawValue>>(arguments) else { return false };
    let begin = text.strip_suffix('…').unwrap_or_default();
    let repeats = |secret: &str| {
        let mut parts = (1..secret.len()).filter_map(|end| secret.get(..end));
        !secret.is_empty() && (text.contains(secret) || parts.any(|part| begin.ends_with(part)))
    };
    secrets.iter().filter_map(|name| arguments.get(name)).any(|value| {
        let one = json::read::<String>(value.get()).map(|secret| vec![secret]);
        let given = one.or_else(|_| json::read(value.get())).map(Secret::new);
        given.is_ok_and(|given| {
            given.expose().iter().any(|secret| repeats(Secret::new(clean(secret).into_owned()).expose()))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_repeats_a_secret_or_is_cut_off_within_one_is_recognised() {
        let arguments = r#"{"pin":"a\"b\nc12","marks":["m1",""],"none":null,"open":"door"}"#;
        let repeats = |text| repeats_secret(text, &["pin", "marks", "none", "gone"], arguments);
        for text in [r#"wrong: a"b c12!"#, "m1", r#"wrong: a"b…"#, "a…"] {
            assert!(repeats(text), "{text}");
        }
        for text in ["", "the door is shut", "null", r#"a"b"#, "cut off …"] {
            assert!(!repeats(text), "{text}");
        }
    }
}
