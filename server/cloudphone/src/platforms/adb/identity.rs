//! The rule of identity, without an adb server: the mark, and so the id, of each phone in a list.
//!
//! Emulators of one image and copies of a phone's data show one mark. Of the phones that show it,
//! the one at whose address it is known keeps it. Each other one gets the mark back that is known
//! at its own address, or a new one. If two phones cannot be distinguished, no mark changes, and
//! neither gets a write. The table of the tests has every case. Start at [`identify`].

use super::facts::Mark;
use super::wire::PhoneAddress;
use std::collections::BTreeMap;

/// A phone that answers, over one connection or more.
#[derive(Clone, Debug)]
pub(super) struct SeenPhone {
    pub(super) addresses: Vec<PhoneAddress>,
    /// The serial of its own.
    pub(super) identity: String,
    pub(super) mark: Option<Mark>,
}

/// The phone that was last at an address.
#[derive(Clone, Debug)]
pub(super) struct KnownPhone {
    /// Empty if it is not known.
    pub(super) identity: String,
    pub(super) mark: Mark,
    /// The phone was rather known by another connection.
    pub(super) is_second: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct KnownPhones {
    pub(super) at: BTreeMap<PhoneAddress, KnownPhone>,
    /// The serials of phones whose address another phone has taken, by their marks.
    pub(super) displaced: BTreeMap<Mark, String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Identity {
    /// The phone is the one whose mark it shows.
    Kept,
    /// The phone is the one that was at its address.
    Former(Mark),
    New,
    /// It may be one of two phones.
    Unclear,
}

struct List<'a> {
    seen: &'a [SeenPhone],
    known: &'a KnownPhones,
}

pub(super) fn identify(seen: &[SeenPhone], known: &KnownPhones) -> Vec<Identity> {
    let list = List { seen, known };
    let judged: Vec<_> = seen.iter().map(|phone| list.judge(phone)).collect();
    let settle = |(phone, identity): (&SeenPhone, &Identity)| {
        let Some(former) = list.former_mark(phone).filter(|_| *identity == Identity::New) else {
            return identity.clone();
        };
        let shows_it = |other: &&SeenPhone| !std::ptr::eq(*other, phone) && other.mark.as_ref() == Some(former);
        let others = || seen.iter().zip(&judged).filter(|(other, _)| shows_it(other)).map(|(_, identity)| identity);
        match others().any(|other| *other == Identity::Kept) {
            true => Identity::New,
            false if others().any(|other| *other == Identity::Unclear) => Identity::Unclear,
            false => Identity::Former(former.clone()),
        }
    };
    seen.iter().zip(&judged).map(settle).collect()
}

impl<'a> List<'a> {
    fn judge(&self, phone: &SeenPhone) -> Identity {
        let Some(mark) = &phone.mark else { return Identity::New };
        let others: Vec<_> = self.showing(mark).filter(|other| !std::ptr::eq(*other, phone)).collect();
        let home = self.rank_at_home(phone, mark);
        let home_of_others = others.iter().map(|other| self.rank_at_home(other, mark)).max().unwrap_or(0);
        if home != home_of_others {
            return if home > home_of_others { Identity::Kept } else { Identity::New };
        }
        // The phone that is known by this mark is away, or there is none.
        let has_former =
            |phone: &SeenPhone| self.former_mark(phone).is_some_and(|former| self.showing(former).next().is_none());
        match self.holder(mark) {
            None => {
                let first = self.showing(mark).find(|phone| !has_former(phone));
                if first.is_some_and(|first| std::ptr::eq(first, phone)) { Identity::Kept } else { Identity::New }
            }
            Some(holder) => {
                let may_be_holder = |phone: &SeenPhone| holder.is_empty() || holder == phone.identity;
                match may_be_holder(phone) {
                    false => Identity::New,
                    true if has_former(phone) || others.into_iter().any(may_be_holder) => Identity::Unclear,
                    true => Identity::Kept,
                }
            }
        }
    }

    fn showing<'m>(&self, mark: &'m Mark) -> impl Iterator<Item = &'a SeenPhone> + use<'a, 'm> {
        self.seen.iter().filter(move |phone| phone.mark.as_ref() == Some(mark))
    }

    /// Returns 2 at the address by which the phone with this mark is known, and 1 at another one of
    /// its addresses.
    fn rank_at_home(&self, phone: &SeenPhone, mark: &Mark) -> u8 {
        let known = phone.addresses.iter().filter_map(|address| self.known.at.get(address));
        known.filter(|known| known.mark == *mark).map(|known| if known.is_second { 1 } else { 2 }).max().unwrap_or(0)
    }

    /// Returns another mark than the phone shows, of the phone that was last at its address and had
    /// the same serial.
    fn former_mark(&self, phone: &SeenPhone) -> Option<&'a Mark> {
        let known = phone.addresses.iter().filter_map(|address| self.known.at.get(address));
        let is_same = |known: &&KnownPhone| !known.identity.is_empty() && known.identity == phone.identity;
        known.filter(is_same).map(|known| &known.mark).find(|mark| phone.mark.as_ref() != Some(mark))
    }

    /// Returns the serial of the phone that is known by this mark; empty if it is not known.
    fn holder(&self, mark: &Mark) -> Option<&'a str> {
        let mut known = self.known.at.values().filter(|known| known.mark == *mark).map(|known| &known.identity);
        known.next().or_else(|| self.known.displaced.get(mark)).map(String::as_str)
    }
}

#[cfg(test)]
mod tests;
