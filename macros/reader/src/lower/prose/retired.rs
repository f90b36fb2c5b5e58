//! Checks that no enum has a retired value, and that no text says one, not even in plain words. A
//! sentence can have such a word in its ordinary meaning: `[allowed]` in reserved.toml then has it
//! with the reason.

use super::written::ContractText;
use crate::lower::require::{at, require_text};
use crate::lower::tools::RETIRED;
use crate::raw::{At, Files};
use crate::report::Report;
use crate::rules::Rule;
use crate::sentences::{split, words};
use crate::source::{RESERVED, SERVICE, TYPES};
use std::collections::HashSet;

pub(super) fn check_values(files: &Files, report: &mut Report) {
    let values = files.types.r#type.iter().filter_map(|(_, ty)| ty.values.as_ref()?.members());
    let capabilities = files.service.resource.iter().filter_map(|(_, resource)| resource.capability.as_ref());
    let declared = values.map(|named| (TYPES, named)).chain(capabilities.map(|named| (SERVICE, named)));
    for (file, name) in declared.flat_map(|(file, named)| named.keys().map(move |name| (file, name))) {
        if values_of(files).any(|value| **value == **name) {
            let message = format!("the value `{}` was retired and is reserved", **name);
            report.add(Rule::ReservedName, at(file, name.span()), message, Some(RETIRED.to_owned()));
        }
    }
}

/// Allows a value that is still a name of something else. Also reports allowed sentences that no
/// text has.
pub(super) fn check_texts(texts: &[ContractText<'_>], vocabulary: &HashSet<&str>, files: &Files, report: &mut Report) {
    let allowed = &files.reserved.allowed;
    let gone: Vec<&str> =
        values_of(files).map(|value| value.as_str()).filter(|value| !vocabulary.contains(value)).collect();
    let mut used = HashSet::new();
    for ContractText { place, text, .. } in texts {
        for sentence in split(text).into_iter().map(str::trim) {
            let Some(value) = gone.iter().find(|value| says(sentence, value)) else { continue };
            if allowed.get(sentence).is_some() {
                used.insert(sentence);
            } else if !report.is_reported(place) {
                let message = format!("`{value}` was retired, and this text says it: {sentence}");
                let help = "say it without the word or, in its ordinary meaning, add the sentence with a reason to `[allowed]` in reserved.toml";
                report.add(Rule::RetiredWord, place.clone(), message, Some(help.to_owned()));
            }
        }
    }
    for (sentence, reason) in allowed.iter() {
        require_text(RESERVED, reason, report);
        if !used.contains(sentence.as_str()) {
            let (place, help) = (at(RESERVED, sentence.span()), Some("remove it".to_owned()));
            report.add(Rule::RetiredWord, place, "no text has this sentence with a retired value", help);
        }
    }
}

fn values_of(files: &Files) -> impl Iterator<Item = &At<String>> {
    files.reserved.values.iter().flatten()
}

/// Returns true if a text has a value in any case and inflected: `stop` is in "Stopped", and
/// `power_off` in "power off".
fn says(text: &str, value: &str) -> bool {
    let (parts, value) = (value.split('_').count().max(2), value.replace('_', ""));
    let stem = value.strip_suffix('e').unwrap_or(&value);
    let words: Vec<String> = words(text).map(str::to_ascii_lowercase).collect();
    let is_value = |word: String| {
        let end = word.strip_prefix(stem).unwrap_or("-");
        let doubled = stem.chars().last().and_then(|last| end.strip_prefix(last)).unwrap_or(end);
        word == value || matches!(end, "s" | "es" | "d") || matches!(doubled, "ed" | "ing")
    };
    (1..=parts).any(|length| words.windows(length).any(|window| is_value(window.concat())))
}
