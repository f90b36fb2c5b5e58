//! The known name that was probably meant by an unknown one.

use std::cmp::Reverse;

#[must_use]
pub fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match nearest(name, known.iter().copied()) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None if known.is_empty() => "none is declared".to_owned(),
        None => format!("declared are {}", known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")),
    }
}

#[must_use]
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    // A name from outside can have any length, and no distance is less than the difference.
    let near = known.into_iter().filter(|candidate| length.abs_diff(candidate.len()) <= 1 + candidate.len() / 3);
    let distance = |candidate: &str| strsim::damerau_levenshtein(name, candidate);
    let by_distance = near.map(|candidate| (distance(candidate), Reverse(candidate.len()), candidate));
    let (distance, _, candidate) = by_distance.min()?;
    (distance <= 1 + candidate.len() / 3).then_some(candidate)
}
