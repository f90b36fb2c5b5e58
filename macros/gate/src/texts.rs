//! Judges a change of a text without a model: wording, or meaning.

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

/// Requires that names, numbers, quoted values and words of negation, obligation and order stay the
/// same sequence, and that four fifths of the words stay. `names` are those of the contract.
pub(crate) fn is_wording(old: &str, new: &str, names: &HashSet<String>) -> bool {
    let [old, new] = [old, new].map(|text| text.split_whitespace().map(word).filter(|word| !word.is_empty()));
    let (old, new): (Vec<_>, Vec<_>) = (old.collect(), new.collect());
    let strict = |words: &[String]| -> Vec<String> {
        words.iter().filter(|word| is_strict(word, names)).map(|word| word.to_lowercase()).collect()
    };
    let longest = old.len().max(new.len());
    longest <= LONGEST && strict(&old) == strict(&new) && common(&old, &new) * 5 >= longest * 4
}

fn word(token: &str) -> String {
    let is_outside = |c: char| !c.is_alphanumeric() && !"`{}_\"".contains(c);
    token.trim_matches(is_outside).to_owned()
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
