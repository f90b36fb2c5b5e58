//! A check of numbers.

use toolwarrant::config::{Findings, Spanned};

pub(super) fn check_number(
    name: &str,
    (usual, most): (u32, u32),
    written: Option<Spanned<u32>>,
    found: &mut Findings<'_>,
) -> u32 {
    let given = written.as_ref().map_or(usual, |number| *number.get_ref());
    if let Some(number) = written.filter(|number| !(1..=most).contains(number.get_ref())) {
        found.add(number.span(), format!("`{name}` is {given}"), Some(format!("1 to {most} are allowed")));
    }
    given
}
