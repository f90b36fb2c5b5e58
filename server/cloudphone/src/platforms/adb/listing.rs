//! Reads the list of the adb server, and asks each phone in it that the operator serves.
//!
//! Phones are asked at the same time, those that were silent last, each with its own deadline: a
//! silent phone costs the others nothing. A phone with two connections is listed once. Start at
//! [`AdbListing`].

use super::asking::{Answer, PhoneAsker};
use super::connections::{Connections, MarkOrder, Marking};
use super::facts::{Mark, word_script};
use super::lines::{PhonePattern, SelectedPhones, parse_list, select};
use super::row::AdbRow;
use super::states::AdbState;
use super::wire::PhoneAddress;
use crate::adapter_kit::phone_ledger::refresh::Source;
use crate::phones::port::Unreachable;
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use tokio::task::JoinSet;
use toolwarrant::Timestamp;
use toolwarrant::base::ignore_poison;

const ASKED_AT_ONCE: usize = 128;

pub(super) struct AdbListing {
    asker: PhoneAsker,
    only: Vec<PhonePattern>,
    last: Mutex<Connections>,
}

impl AdbListing {
    pub(super) fn new(asker: PhoneAsker, only: Vec<PhonePattern>, known: Connections) -> Self {
        Self { asker, only, last: Mutex::new(known) }
    }

    pub(super) async fn version(&self) -> Result<u32, Unreachable> {
        let text = self.asker.server.tell("host:version").await?;
        u32::from_str_radix(&text, 16).map_err(|_| Unreachable("what listens there is not an adb server".into()))
    }

    async fn select(&self) -> Result<SelectedPhones, Unreachable> {
        let text = self.asker.server.tell("host:devices-l").await?;
        Ok(select(&self.only, &self.asker.connect, &parse_list(&text)))
    }

    pub(super) async fn read_one(&self, known: &AdbRow) -> Result<AdbRow, Unreachable> {
        if known.state == AdbState::Unclear {
            return Ok(known.clone());
        }
        let listed = self.select().await?.served.remove(&known.address).unwrap_or(AdbState::Absent);
        let Answer { state, facts } = self.asker.ask(&known.address, listed).await;
        Ok(match facts {
            // Another phone may have this one's connection now. The next list finds this one.
            Some(facts) if !known.may_be(&facts) => AdbRow { state: AdbState::Absent, ..known.clone() },
            facts => AdbRow { state, facts: facts.unwrap_or_else(|| known.facts.clone()), ..known.clone() },
        })
    }

    pub(super) fn last(&self) -> MutexGuard<'_, Connections> {
        ignore_poison(self.last.lock())
    }
}

#[async_trait]
impl Marking for AdbListing {
    async fn is_one(&self, first: &AdbRow, second: &AdbRow) -> Option<bool> {
        let server = &self.asker.server;
        let word = server.make_word().ok()?;
        server.run(&first.address, &word_script(first.facts.mark.as_ref()?, &word)).await.ok()?;
        if server.read_facts(&first.address).await.ok()?.word != word {
            return None;
        }
        Some(server.read_facts(&second.address).await.ok()?.word == word)
    }

    async fn mark(&self, orders: Vec<MarkOrder>) -> BTreeMap<PhoneAddress, Option<Mark>> {
        let (mut marking, mut marks) = (JoinSet::new(), BTreeMap::new());
        // The next list marks the others.
        for order in orders.into_iter().take(ASKED_AT_ONCE) {
            let asker = self.asker.clone();
            marking.spawn(async move { (asker.mark(&order).await, order.address) });
        }
        while let Some(Ok((mark, address))) = marking.join_next().await {
            marks.insert(address, mark);
        }
        marks
    }
}

#[async_trait]
impl Source<AdbRow> for AdbListing {
    async fn list(&self) -> Result<Vec<AdbRow>, Unreachable> {
        let SelectedPhones { served, left_out } = self.select().await?;
        let known = self.last().clone();
        let was_silent =
            |address: &PhoneAddress| known.get(address).is_some_and(|known| known.row.state == AdbState::Silent);
        let (later, first): (Vec<_>, Vec<_>) = served.into_iter().partition(|(address, _)| was_silent(address));
        let mut waiting = first.into_iter().chain(later);
        let (mut asked, mut list) = (JoinSet::new(), Connections::new(left_out));
        loop {
            while asked.len() < ASKED_AT_ONCE
                && let Some((address, state)) = waiting.next()
            {
                let (asker, tried_at) = (self.asker.clone(), known.get(&address).and_then(|known| known.tried_at));
                asked.spawn(async move {
                    let answer = asker.ask_or_revive(&address, state, tried_at).await;
                    (address, answer)
                });
            }
            match asked.join_next().await {
                Some(Ok((address, (Answer { state, facts }, tried_at)))) => {
                    let row = known.get(&address).map_or_else(|| AdbRow::new(address), |known| known.row.clone());
                    let facts = facts.unwrap_or_else(|| row.facts.clone());
                    list.add(AdbRow { state, facts, ..row }, tried_at, &known);
                }
                Some(Err(error)) => tracing::error!(%error, "a phone could not be asked"),
                None => break,
            }
        }
        let last = known.follow(list, self).await;
        let rows = last.phones().cloned().collect();
        *self.last() = last;
        Ok(rows)
    }

    /// Spares no server, because it is on this machine.
    fn pause_end(&self) -> Option<Timestamp> {
        Some(self.asker.server.clock.now())
    }
}
