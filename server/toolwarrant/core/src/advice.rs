//! Advice in sentences of the contract. A reader gets only those sentences that it can act on.

use crate::permissions::PermissionSet;
use toolwarrant_base::wording::Words;

/// Sentences of the contract that advise a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advice(pub &'static [Sentence]);

#[derive(Debug, PartialEq, Eq)]
pub struct Sentence {
    text: &'static str,
    /// All tools that it names.
    needs: PermissionSet,
    /// Tools that it concerns, of which one is enough. Empty: all readers.
    any: PermissionSet,
}

impl Sentence {
    /// Makes a sentence. `needs` and `any` are the bits of permission sets.
    #[must_use]
    pub const fn new(text: &'static str, needs: u64, any: u64) -> Self {
        Self { text, needs: PermissionSet(needs), any: PermissionSet(any) }
    }

    #[must_use]
    pub const fn to_all(text: &'static str) -> Self {
        Self::new(text, 0, 0)
    }
}

impl Advice {
    /// No advice.
    pub const NONE: Self = Self(&[]);

    /// Returns the sentences for a reader, as one text; empty if there are none.
    #[must_use]
    pub fn for_reader(self, permissions: PermissionSet) -> Words {
        let told = self.0.iter().filter(|sentence| {
            permissions.covers(sentence.needs) && (sentence.any.0 == 0 || sentence.any.0 & permissions.0 != 0)
        });
        let mut told = told.map(|sentence| Words::from(sentence.text));
        match (told.next(), told.next()) {
            (None, _) => Words::default(),
            (Some(only), None) => only,
            (Some(first), Some(second)) => {
                Words::list(&[first, second].into_iter().chain(told).collect::<Vec<_>>(), " ")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_is_told_what_it_can_act_on() {
        static SENTENCES: [Sentence; 3] =
            [Sentence::to_all("Always."), Sentence::new("Both.", 3, 0), Sentence::new("Either.", 0, 3)];
        let advice = Advice(&SENTENCES);
        for (permissions, told) in
            [(0, "Always."), (1, "Always. Either."), (3, "Always. Both. Either."), (4, "Always.")]
        {
            assert_eq!(advice.for_reader(PermissionSet(permissions)).as_str(), told);
        }
        assert_eq!(Advice::NONE.for_reader(PermissionSet(3)), Words::default());
    }
}
