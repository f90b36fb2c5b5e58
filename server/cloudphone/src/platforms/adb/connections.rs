//! The connections in the list of the adb server: the only map of what they were last, and the
//! phones behind them.
//!
//! A phone has one id, whatever connects it: USB, Wi-Fi, a name on the network, or several. So this
//! server writes a mark on each phone. Connections that show one mark lead to one phone if a word
//! that is written over one is read over the other. [`identify`] decides which phone of several
//! keeps the mark. Start at [`Connections::follow`].

use super::facts::{Mark, PhoneFacts};
use super::identity::{Identity, KnownPhone, KnownPhones, SeenPhone, identify};
use super::row::AdbRow;
use super::states::AdbState;
use super::wire::PhoneAddress;
use async_trait::async_trait;
use std::collections::BTreeMap;
use toolwarrant::Timestamp;

const SECOND: &str = "it is a second connection of a phone that is served";

#[derive(Clone, Debug)]
pub(super) struct Connection {
    /// With the mark of the phone that was last at this address.
    pub(super) row: AdbRow,
    /// False if it was only in an earlier list.
    pub(super) is_listed: bool,
    /// The connection whose row the phone has.
    pub(super) second_of: Option<PhoneAddress>,
    /// The connections could not be compared, so they count as one.
    is_unsure: bool,
    /// The last try to bring a phone back that did not answer.
    pub(super) tried_at: Option<Timestamp>,
    /// The starts that were seen since the phone last ran for long.
    pub(super) starts: u32,
    /// The start of a phone that cannot be marked.
    unmarked: Option<Option<String>>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Connections {
    all: BTreeMap<PhoneAddress, Connection>,
    /// The serial, and why it is not served.
    pub(super) left_out: Vec<(String, &'static str)>,
    /// The serials of phones whose address another phone has taken, by their marks.
    displaced: BTreeMap<Mark, String>,
}

/// A mark to write: on a phone that shows none, or in place of the one that it shows.
pub(super) struct MarkOrder {
    pub(super) address: PhoneAddress,
    pub(super) is_first: bool,
    /// A new one if it is `None`.
    pub(super) mark: Option<Mark>,
}

#[async_trait]
pub(super) trait Marking: Sync {
    /// Returns `None` if they cannot be compared now.
    async fn is_one(&self, first: &AdbRow, second: &AdbRow) -> Option<bool>;

    /// Writes marks. Returns those that can be read afterwards.
    async fn mark(&self, orders: Vec<MarkOrder>) -> BTreeMap<PhoneAddress, Option<Mark>>;
}

impl Connection {
    pub(super) fn new(row: AdbRow) -> Self {
        Self { row, is_listed: true, second_of: None, is_unsure: false, tried_at: None, starts: 0, unmarked: None }
    }

    fn count_starts(&self, row: &AdbRow) -> u32 {
        match (&self.row.facts.start, &row.facts.start) {
            _ if row.facts.has_run_long || !self.row.may_be(&row.facts) => 0,
            (Some(last), Some(start)) if last != start => self.starts + 1,
            _ => self.starts,
        }
    }
}

impl Connections {
    /// Adds what the list shows of a connection, with what is known of it.
    pub(super) fn add(&mut self, row: AdbRow, tried_at: Option<Timestamp>, known: &Self) {
        let known = known.get(&row.address);
        let unmarked = known.and_then(|known| known.unmarked.clone());
        let starts = known.map_or(0, |known| known.count_starts(&row));
        self.all.insert(row.address.clone(), Connection { tried_at, starts, unmarked, ..Connection::new(row) });
    }

    pub(super) fn new(left_out: Vec<(String, &'static str)>) -> Self {
        Self { left_out, ..Self::default() }
    }

    /// Takes over the phones that an earlier process knew.
    pub(super) fn of_rows(rows: impl Iterator<Item = AdbRow>) -> Self {
        let all = rows.map(|row| (row.address.clone(), Connection { is_listed: false, ..Connection::new(row) }));
        Self { all: all.collect(), ..Self::default() }
    }

    pub(super) fn get(&self, address: &PhoneAddress) -> Option<&Connection> {
        self.all.get(address)
    }

    /// Returns the phones of the list, each once.
    pub(super) fn phones(&self) -> impl Iterator<Item = &AdbRow> {
        let is_phone = |connection: &&Connection| connection.is_listed && connection.second_of.is_none();
        self.all.values().filter(is_phone).map(|connection| &connection.row)
    }

    /// Returns what follows this list. The marks of `list` are those that phones show.
    pub(super) async fn follow(&self, mut list: Self, marking: &dyn Marking) -> Self {
        let known = self.describe_known();
        self.mark_bare(&mut list, &known, marking).await;
        let phones = self.unite(&mut list, marking).await;
        let identities = identify(&phones, &known);
        let written = marking.mark(order_marks(&phones, &identities, |phone| phone.mark.is_some())).await;
        for (phone, identity) in phones.into_iter().zip(identities) {
            self.settle(&mut list, phone, identity, &written);
        }
        self.settle_silent(&mut list);
        // An address that is not listed keeps its mark, for when it comes back.
        let is_away = |address: &PhoneAddress, connection: &Connection| {
            connection.row.facts.mark.is_some() && !list.all.contains_key(address)
        };
        let away: Vec<_> = self.all.iter().filter(|(address, connection)| is_away(address, connection)).collect();
        for (address, connection) in away {
            let second_of = list.find_elsewhere(connection).or_else(|| connection.second_of.clone());
            list.all.insert(address.clone(), Connection { is_listed: false, second_of, ..connection.clone() });
        }
        let was_known = known.at.into_values().map(|KnownPhone { mark, identity, .. }| (mark, identity));
        let is_known =
            |mark: &Mark| list.all.values().any(|connection| connection.row.facts.mark.as_ref() == Some(mark));
        let displaced = known.displaced.into_iter().chain(was_known).filter(|(mark, _)| !is_known(mark));
        list.displaced = displaced.collect();
        list
    }

    fn describe_known(&self) -> KnownPhones {
        let known = self.all.iter().filter_map(|(address, Connection { row, second_of, .. })| {
            let PhoneFacts { identity, mark, .. } = &row.facts;
            let (identity, is_second) = (identity.clone(), second_of.is_some());
            Some((address.clone(), KnownPhone { identity, mark: mark.clone()?, is_second }))
        });
        KnownPhones { at: known.collect(), displaced: self.displaced.clone() }
    }

    /// Marks running phones without a mark.
    async fn mark_bare(&self, list: &mut Self, known: &KnownPhones, marking: &dyn Marking) {
        let rows = list.all.values().map(|connection| &connection.row);
        let seen: Vec<_> = rows.filter(|row| row.answers()).map(see).collect();
        let is_bare = |phone: &SeenPhone| {
            let connection = phone.addresses.first().and_then(|address| list.get(address));
            connection.is_some_and(|Connection { row, unmarked, .. }| {
                let was_in_vain = unmarked.as_ref() == Some(&row.facts.start);
                row.state == AdbState::Running && row.facts.mark.is_none() && !was_in_vain
            })
        };
        let orders = order_marks(&seen, &identify(&seen, known), is_bare);
        for (address, mark) in marking.mark(orders).await {
            let Some(connection) = list.all.get_mut(&address) else { continue };
            if mark.is_none() {
                tracing::info!(%address, "a phone cannot be marked, so each connection of it has an id of its own");
                connection.unmarked = Some(connection.row.facts.start.clone());
            }
            connection.row.facts.mark = mark;
        }
    }

    /// Finds the phones behind the connections that answer. The first address of each is the one
    /// for its row.
    async fn unite(&self, list: &mut Self, marking: &dyn Marking) -> Vec<SeenPhone> {
        let of_network =
            |address: &PhoneAddress| address.as_str().contains(':') && !address.as_str().starts_with("usb:");
        let is_known = |address: &PhoneAddress| self.get(address).is_some_and(|known| known.second_of.is_none());
        let mut rows: Vec<_> =
            list.all.values().map(|connection| &connection.row).filter(|row| row.answers()).collect();
        rows.sort_by_key(|row| (!is_known(&row.address), of_network(&row.address)));
        let (mut phones, mut unsure) = (Vec::<(&AdbRow, SeenPhone)>::new(), Vec::new());
        'rows: for row in rows {
            let (mark, identity) = (&row.facts.mark, &row.facts.identity);
            for (first, phone) in &mut phones {
                if mark.is_none() || phone.mark != *mark || phone.identity != *identity {
                    continue;
                }
                let is_one = if self.were_one(first, row) { Some(true) } else { marking.is_one(first, row).await };
                if is_one.is_none() {
                    unsure.push(row.address.clone());
                }
                if is_one != Some(false) {
                    phone.addresses.push(row.address.clone());
                    continue 'rows;
                }
            }
            phones.push((row, see(row)));
        }
        let phones = phones.into_iter().map(|(_, phone)| phone).collect();
        for address in unsure {
            list.all.entry(address).and_modify(|connection| connection.is_unsure = true);
        }
        phones
    }

    /// Returns true if these connections led to one phone with this mark, and have answered since.
    fn were_one(&self, first: &AdbRow, second: &AdbRow) -> bool {
        let [Some(one), Some(another)] = [first, second].map(|row| self.get(&row.address)) else { return false };
        let stays = |known: &Connection, row: &AdbRow| {
            known.is_listed && known.row.answers() && known.row.facts.mark == row.facts.mark
        };
        let is_pair =
            another.second_of.as_ref() == Some(&first.address) || one.second_of.as_ref() == Some(&second.address);
        is_pair && !one.is_unsure && !another.is_unsure && stays(one, first) && stays(another, second)
    }

    fn settle(
        &self,
        list: &mut Self,
        phone: SeenPhone,
        identity: Identity,
        written: &BTreeMap<PhoneAddress, Option<Mark>>,
    ) {
        let SeenPhone { addresses, mark: shown, identity: _ } = phone;
        let Some((first, others)) = addresses.split_first() else { return };
        let mark = match (&identity, written.get(first)) {
            // A mark that could not be replaced is the mark of another phone.
            (Identity::New | Identity::Former(_), Some(mark)) if *mark == shown => None,
            (_, Some(mark)) => mark.clone(),
            (Identity::Kept, None) => shown.clone(),
            // It cannot be marked before it has booted.
            (Identity::Former(mark), None)
                if list.get(first).is_some_and(|connection| connection.unmarked.is_none()) =>
            {
                Some(mark.clone())
            }
            (Identity::New | Identity::Former(_), None) => None,
            (Identity::Unclear, None) => self.get(first).and_then(|known| known.row.facts.mark.clone()),
        };
        let is_unclear = identity == Identity::Unclear || mark.is_none() && shown.is_some();
        for address in &addresses {
            let Some(connection) = list.all.get_mut(address) else { continue };
            connection.row.facts.mark.clone_from(&mark);
            if is_unclear {
                connection.row.state = AdbState::Unclear;
            }
            connection.second_of = others.contains(address).then(|| first.clone());
        }
        list.left_out.extend(others.iter().map(|address| (address.to_string(), SECOND)));
    }

    /// Leaves out the connections without an answer that led to a phone with another one.
    fn settle_silent(&self, list: &mut Self) {
        let silent: Vec<_> = list.all.values().filter(|connection| !connection.row.answers()).cloned().collect();
        for connection in silent.into_iter().filter(|connection| connection.row.state != AdbState::Unclear) {
            let was_second = self.get(&connection.row.address).and_then(|known| known.second_of.clone());
            let second_of = list.find_elsewhere(&connection).or(was_second);
            if second_of.is_some() {
                list.left_out.push((connection.row.address.to_string(), SECOND));
            }
            if let Some(connection) = list.all.get_mut(&connection.row.address) {
                connection.second_of = second_of;
            }
        }
    }

    /// Returns the connection over which the phone of this one answers.
    fn find_elsewhere(&self, connection: &Connection) -> Option<PhoneAddress> {
        let mark = connection.row.facts.mark.as_ref()?;
        let has_mark = |other: &&Connection| {
            other.is_listed
                && other.second_of.is_none()
                && other.row.answers()
                && other.row.facts.mark.as_ref() == Some(mark)
        };
        self.all.values().find(has_mark).map(|other| other.row.address.clone())
    }
}

fn order_marks(phones: &[SeenPhone], identities: &[Identity], admits: impl Fn(&SeenPhone) -> bool) -> Vec<MarkOrder> {
    let order = |(phone, identity): (&SeenPhone, &Identity)| {
        let mark = match identity {
            Identity::Former(mark) => Some(mark.clone()),
            Identity::New => None,
            Identity::Kept | Identity::Unclear => return None,
        };
        Some(MarkOrder { address: phone.addresses.first()?.clone(), is_first: phone.mark.is_none(), mark })
    };
    phones.iter().zip(identities).filter(|(phone, _)| admits(phone)).filter_map(order).collect()
}

fn see(AdbRow { address, facts, .. }: &AdbRow) -> SeenPhone {
    SeenPhone { addresses: vec![address.clone()], identity: facts.identity.clone(), mark: facts.mark.clone() }
}

#[cfg(test)]
mod tests;
