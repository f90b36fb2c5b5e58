//! Reads the list of the adb server, and asks each phone in it that the operator serves.
//!
//! Phones are asked at the same time, those that were silent last, each with its own deadline: a
//! silent phone costs the others nothing. A phone with two connections is listed once. Start at
//! [`AdbListing`].

use super::asking::{ANSWER_WITHIN, PhoneAsker};
use super::connections::{Comparison, unite};
use super::facts::{PhoneFacts, word_script};
use super::lines::{PhonePattern, SelectedPhones, parse_list, select};
use super::row::{AdbRow, LastList};
use super::server::AdbServer;
use super::states::AdbState;
use super::wire::PhoneAddress;
use crate::adapter_kit::phone_ledger::Recoded;
use crate::adapter_kit::phone_ledger::refresh::Source;
use crate::phones::port::Unreachable;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Mutex, MutexGuard};
use tokio::task::JoinSet;
use toolwarrant::base::ignore_poison;
use toolwarrant::{BoxFuture, Timestamp};

const ASKED_AT_ONCE: usize = 128;

pub(super) struct AdbListing {
    pub(super) asker: PhoneAsker,
    only: Vec<PhonePattern>,
    last: Mutex<LastList>,
    /// Connections that lead to one phone, with its mark.
    pairs: Mutex<BTreeSet<(PhoneAddress, PhoneAddress, Option<String>)>>,
}

impl AdbListing {
    pub(super) fn new(asker: PhoneAsker, only: Vec<PhonePattern>, known: Vec<AdbRow>) -> Self {
        let rows = known.into_iter().filter_map(|row| Some((PhoneAddress::parse(&row.address)?, row)));
        let last = LastList { rows: rows.collect(), ..LastList::default() };
        Self { asker, only, last: Mutex::new(last), pairs: Mutex::default() }
    }

    pub(super) fn server(&self) -> &AdbServer {
        &self.asker.server
    }

    pub(super) async fn version(&self) -> Result<u32, Unreachable> {
        let text = self.server().ask("host:version", self.until()).await?.text().await?;
        u32::from_str_radix(&text, 16).map_err(|_| Unreachable("what listens there is not an adb server".into()))
    }

    async fn select(&self) -> Result<SelectedPhones, Unreachable> {
        let text = self.server().ask("host:devices-l", self.until()).await?.text().await?;
        Ok(select(&self.only, &self.asker.connect, &parse_list(&text)))
    }

    pub(super) async fn read_one(&self, known: &AdbRow, address: &PhoneAddress) -> Result<AdbRow, Unreachable> {
        let state = self.select().await?.served.remove(address).unwrap_or(AdbState::Absent);
        let (state, facts) = self.asker.ask(address, state).await;
        // Another phone may have this one's connection now. The next list finds this one.
        let is_other = facts.as_ref().is_some_and(|facts| facts.is_of_another(&known.facts));
        Ok(match (is_other, facts) {
            (true, _) => AdbRow { state: AdbState::Absent, ..known.clone() },
            (false, facts) => AdbRow { state, facts: facts.unwrap_or_else(|| known.facts.clone()), ..known.clone() },
        })
    }

    pub(super) fn until(&self) -> Timestamp {
        self.server().clock.now().plus(ANSWER_WITHIN)
    }

    async fn rows(&self) -> Result<Vec<AdbRow>, Unreachable> {
        let SelectedPhones { served, left_out } = self.select().await?;
        let was_silent =
            |address: &PhoneAddress| self.last().rows.get(address).is_some_and(|row| row.state == AdbState::Silent);
        let (later, first): (Vec<_>, Vec<_>) = served.into_iter().partition(|(address, _)| was_silent(address));
        let mut waiting = first.into_iter().chain(later);
        let (mut asked, mut rows) = (JoinSet::new(), BTreeMap::new());
        loop {
            while asked.len() < ASKED_AT_ONCE
                && let Some((address, state)) = waiting.next()
            {
                let asker = self.asker.clone();
                asked.spawn(async move {
                    let answer = asker.ask_or_revive(&address, state).await;
                    (address, answer)
                });
            }
            match asked.join_next().await {
                Some(Ok((address, (state, facts)))) => {
                    drop(rows.insert(address.clone(), self.row(&address, state, facts)))
                }
                Some(Err(error)) => tracing::error!(%error, "a phone could not be asked"),
                None => break,
            }
        }
        self.mark_all(&mut rows).await;
        let known = self.last().clone();
        // Another phone can get an address that does not answer, so its pairs are compared again.
        let answers = |address: &PhoneAddress| rows.get(address).is_some_and(AdbRow::answers);
        ignore_poison(self.pairs.lock()).retain(|(first, second, _)| answers(first) && answers(second));
        let list = LastList { rows, left_out, ..LastList::default() };
        let last = unite(list, &known, self).await;
        *self.last() = last.clone();
        Ok(last.rows.into_values().collect())
    }

    fn row(&self, address: &PhoneAddress, state: AdbState, facts: Option<PhoneFacts>) -> AdbRow {
        let known = self.last().rows.get(address).cloned().unwrap_or_else(|| AdbRow::new(address.as_str()));
        AdbRow { state, facts: facts.unwrap_or_else(|| known.facts.clone()), ..known }
    }

    /// Marks phones. One gets the mark that was last at its address, if it says the same serial and
    /// no other phone shows that mark.
    async fn mark_all(&self, rows: &mut BTreeMap<PhoneAddress, AdbRow>) {
        let shown: HashSet<_> = rows.values().filter_map(|row| row.facts.mark.clone()).collect();
        let mut marking = JoinSet::new();
        let unmarked = |row: &AdbRow| row.state == AdbState::Running && row.facts.mark.is_none();
        // The next list marks the others.
        for (address, row) in rows.iter().filter(|(_, row)| unmarked(row)).take(ASKED_AT_ONCE) {
            let PhoneFacts { identity, start, .. } = row.facts.clone();
            let known = self.last().rows.get(address).map(|row| row.facts.clone());
            let known = known.filter(|known| !identity.is_empty() && known.identity == identity);
            let mark = known.and_then(|known| known.mark).filter(|mark| !shown.contains(mark));
            let (asker, address) = (self.asker.clone(), address.clone());
            marking.spawn(async move { (asker.mark(&address, mark, start).await, address) });
        }
        while let Some(Ok((mark, address))) = marking.join_next().await {
            if let Some(row) = rows.get_mut(&address) {
                row.facts.mark = mark;
            }
        }
    }

    async fn compare(&self, first: &AdbRow, second: &AdbRow) -> Option<bool> {
        let [one, another] = [first, second].map(|row| PhoneAddress::parse(&row.address));
        let (one, another, word, server) = (one?, another?, self.asker.make_word()?, self.server());
        self.asker.run(&one, &word_script(first.facts.mark.as_ref()?, &word)).await.ok()?;
        if server.read_facts(&one, self.until()).await.ok()?.word != word {
            return None;
        }
        let is_one = server.read_facts(&another, self.until()).await.ok()?.word == word;
        if !is_one {
            // If this fails, the next list compares again.
            let _ = self.asker.run(&another, &word_script(&self.asker.make_word()?, &word)).await;
        }
        Some(is_one)
    }

    pub(super) fn last(&self) -> MutexGuard<'_, LastList> {
        ignore_poison(self.last.lock())
    }
}

impl Comparison for AdbListing {
    fn is_one<'a>(&'a self, first: &'a AdbRow, second: &'a AdbRow) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let [one, another] = [first, second].map(|row| PhoneAddress::parse(&row.address));
            let (Some(one), Some(another)) = (one, another) else { return false };
            let pair = (one, another, first.facts.mark.clone());
            if ignore_poison(self.pairs.lock()).contains(&pair) {
                return true;
            }
            // Connections that cannot be compared now count as one: they have one mark.
            let is_one = self.compare(first, second).await;
            if is_one == Some(true) {
                ignore_poison(self.pairs.lock()).insert(pair);
            }
            is_one.unwrap_or(true)
        })
    }
}

impl Source<AdbRow> for AdbListing {
    fn list(&self) -> BoxFuture<'_, Result<Vec<AdbRow>, Unreachable>> {
        Box::pin(self.rows())
    }

    fn code_changes(&self) -> BoxFuture<'_, Result<Vec<Recoded>, Unreachable>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Spares no server, because it is on this machine.
    fn pause_end(&self) -> Option<Timestamp> {
        Some(self.server().clock.now())
    }
}
