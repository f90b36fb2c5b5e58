//! Finds the units of measure that a text names.
//!
//! It knows the words and symbols below, and does not read sentences: a scale in other words, such
//! as "the smallest part of the currency", is not seen.

use std::collections::BTreeSet;

/// Symbols and names. The first is for a unit without a prefix.
const PREFIXES: &str = "= n=nano µ=micro m=milli c=centi k=kilo M=mega G=giga T=tera Ki=kibi Mi=mebi Gi=gibi";

const PREFIXED: &str = "s=second m=metre g=gram L=litre b=bit B=byte V=volt W=watt Hz=hertz";

/// Each line has one unit: its name, and other spellings in lower case.
const OTHERS: &str = "\
    second sec\nminute min\nhour h hr\nday\nweek\nmonth\nyear yr\n\
    inch inches\nfoot feet ft\nyard\nmile mi\nmph\npixel px\ndegree °\nradian\n\
    tonne ton\nounce oz\npound lb £ gbp\ngallon\ncelsius °c\nfahrenheit °f\nkelvin\n\
    percent % percentage\nfraction\ncent\neuro € eur\ndollar $ usd\nyuan cny rmb\nyen jpy";

/// Returns true if a unit went and another came.
pub(crate) fn is_unit_changed(old: &str, new: &str) -> bool {
    let [old, new] = [old, new].map(|text| words(text).filter_map(|word| unit(&word)).collect::<BTreeSet<_>>());
    !old.is_subset(&new) && !new.is_subset(&old)
}

pub(crate) fn words(text: &str) -> impl Iterator<Item = String> {
    let is_outside = |c: char| !c.is_alphanumeric() && !"`{}_\"%°€$£".contains(c);
    let words = text.split(|c: char| c.is_whitespace() || c == '/');
    words.map(move |word| word.trim_matches(is_outside).to_owned()).filter(|word| !word.is_empty())
}

/// Returns one name for all spellings of a unit.
pub(crate) fn unit(word: &str) -> Option<String> {
    let word = word.trim_start_matches(|c: char| c.is_ascii_digit() || ".,".contains(c));
    let lower = word.to_lowercase().replace("meter", "metre").replace("liter", "litre");
    let is_word = |text: &str, name: &str| text == name || text.strip_suffix('s') == Some(name);
    let mut prefixed = pairs(PREFIXED).flat_map(|unit| pairs(PREFIXES).map(move |prefix| (unit, prefix)));
    let found = prefixed.find(|((symbol, name), (short, long))| {
        word.strip_prefix(*short) == Some(*symbol) || lower.strip_prefix(*long).is_some_and(|rest| is_word(rest, name))
    });
    let other = || OTHERS.lines().find(|line| line.split(' ').any(|name| is_word(&lower, name)))?.split(' ').next();
    found.map(|((_, name), (_, long))| format!("{long}{name}")).or_else(|| other().map(str::to_owned))
}

fn pairs(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    text.split(' ').filter_map(|pair| pair.split_once('='))
}
