//! Judges a change of a text without a model: wording, or meaning.

use crate::units::{unit, words};
use std::collections::HashSet;

/// The comparison takes the square of the words.
const LONGEST: usize = 1_000;

/// Words of negation, obligation and order.
const STRICT: [&str; 41] = [
    "not", "no", "never", "none", "nothing", "nobody", "neither", "nor", "cannot", "without", "unless", "except",
    "only", "if", "must", "may", "can", "should", "shall", "need", "needs", "required", "optional", "always", "all",
    "any", "each", "every", "before", "after", "then", "until", "once", "first", "last", "again", "at", "most",
    "least", "more", "less",
];

/// Requires that names, numbers, units, quoted values and words of negation, obligation and order
/// stay the same sequence, and that four fifths of the words stay. `names` are those of the
/// contract.
pub(crate) fn is_wording(old: &str, new: &str, names: &HashSet<String>) -> bool {
    let [old, new] = [old, new].map(|text| words(text).collect::<Vec<_>>());
    let strict = |words: &[String]| -> Vec<String> {
        let strict = |word: &String| is_strict(word, names).then(|| word.to_lowercase());
        words.iter().filter_map(|word| unit_alone(word).or_else(|| strict(word))).collect()
    };
    let longest = old.len().max(new.len());
    longest <= LONGEST && strict(&old) == strict(&new) && common(&old, &new) * 5 >= longest * 4
}

/// Leaves out a unit with its number, which must stay as it is.
fn unit_alone(word: &str) -> Option<String> {
    unit(word).filter(|_| !word.starts_with(|c: char| c.is_ascii_digit()))
}

fn is_strict(word: &str, names: &HashSet<String>) -> bool {
    let lower = word.to_lowercase();
    word.contains(['`', '_', '{', '"'])
        || word.contains(|c: char| c.is_ascii_digit())
        || names.contains(word)
        || STRICT.contains(&&*lower)
        || lower.ends_with("n't")
}

/// Measures the longest common subsequence, ignoring case.
fn common(old: &[String], new: &[String]) -> usize {
    let mut lengths = vec![0; new.len() + 1];
    for left in old {
        let mut diagonal = 0;
        for (n, right) in new.iter().enumerate() {
            let above = lengths[n + 1];
            let is_same = left.eq_ignore_ascii_case(right);
            lengths[n + 1] = if is_same { diagonal + 1 } else { above.max(lengths[n]) };
            diagonal = above;
        }
    }
    lengths[new.len()]
}
