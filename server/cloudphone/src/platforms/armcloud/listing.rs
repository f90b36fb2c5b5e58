//! Reads the whole list of pads, or one pad again, from the platform's calls.
//!
//! `infos` has every pad, in pages. `userPadList` has names and seats, on VMOS Cloud and VSPhone.
//! Totals and sizes in the answers are not trusted: only a page without a new pad is the last. An
//! incomplete list is an error, because missing pads would count as gone. Start at [`Listing`].

use super::rows::{CodeChanges, Pad, PadRows};
use crate::adapter_kit::phone_ledger::refresh::Source;
use crate::adapter_kit::phone_ledger::{Listed, PhoneLedger, Recoded, Row};
use crate::phones::port::Unreachable;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use toolwarrant::{BoxFuture, Clock, Timestamp};

/// The most that ARMCloud accepts.
const ROWS: u32 = 1_000;

/// For platforms that refuse or cut larger pages.
const ROWS_REFUSED: u32 = 100;

const PAGES_MAX: u32 = 1_000;

const PADS_MAX: usize = 100_000;

pub trait Lists: Send + Sync + 'static {
    fn infos<'a>(&'a self, ask: &'a InfosQuery) -> BoxFuture<'a, Result<PadRows, NoList>>;

    fn user_pad_list<'a>(&'a self, ask: &'a SeatsQuery) -> BoxFuture<'a, Result<PadRows, NoList>>;

    fn change_records(&self) -> BoxFuture<'_, Result<CodeChanges, NoList>>;

    fn pause_end(&self) -> Option<Timestamp>;
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InfosQuery {
    /// From 1.
    pub page: u32,
    pub rows: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pad_codes: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SeatsQuery {
    /// From 1. Sent only to platforms that answer in pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub equipment_ids: Vec<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pad_code: Option<String>,
}

#[derive(Clone, Debug)]
pub enum NoList {
    /// HTTP 404, at least for now.
    Unsupported,
    NoSuchPad,
    Refused(Unreachable),
    Failed(Unreachable),
}

pub struct Listing<L> {
    lists: L,
    /// Pages of [`ROWS`] were refused or cut.
    has_small_pages: AtomicBool,
}

impl<L: Lists> Listing<L> {
    #[must_use]
    pub fn new(lists: L) -> Self {
        Self { lists, has_small_pages: AtomicBool::new(false) }
    }

    /// Updates the ledger. One answer without the phone is an error, but no evidence that the phone
    /// is gone: two lists in a row are.
    pub async fn reread(
        &self,
        ledger: &PhoneLedger<Pad>,
        known: &Listed<Pad>,
        clock: &Clock,
    ) -> Result<Listed<Pad>, Unreachable> {
        let began = clock.now();
        let read = self.read_one(&known.row).await?;
        let (pad, recoded) = read.ok_or_else(|| Unreachable("the platform does not show the phone".into()))?;
        ledger.note(pad, recoded, began).await;
        let listed = ledger.get(&known.id).filter(|listed| listed.read_at >= began);
        listed.ok_or_else(|| Unreachable("the platform shows another phone, or a list was not stored".into()))
    }

    /// Finds a pad whose code has changed by its seat, or by the records of changed codes.
    pub async fn read_one(&self, known: &Pad) -> Result<Option<(Pad, Vec<Recoded>)>, Unreachable> {
        let code = known.code();
        let seat = known.serial().and_then(|seat| seat.parse().ok());
        let ask = match seat {
            Some(seat) => SeatsQuery { equipment_ids: vec![seat], ..SeatsQuery::default() },
            None => SeatsQuery { pad_code: Some(code.to_owned()), ..SeatsQuery::default() },
        };
        let (info, seats) = tokio::join!(self.info(code), self.seats(&ask));
        let (info, seats) = (info?, seats?);
        let of_seat = seats
            .pads
            .into_iter()
            .find(|row| if seat.is_some() { row.serial() == known.serial() } else { row.code() == code });
        let (found, recoded) = match (info, of_seat) {
            (info, Some(row)) => {
                let info = if row.code() == code { info } else { self.info(row.code()).await? };
                (Some(info.unwrap_or_default().or(row)), Vec::new())
            }
            (Some(info), None) => (Some(info), Vec::new()),
            (None, None) => self.find_by_record(code).await?,
        };
        Ok(found.filter(|pad| !pad.is_deleted()).map(|pad| (pad, recoded)))
    }

    async fn find_by_record(&self, code: &str) -> Result<(Option<Pad>, Vec<Recoded>), Unreachable> {
        let records = self.records().await?;
        let changed: HashMap<&str, &str> =
            records.iter().map(|Recoded { from, to }| (from.as_str(), to.as_str())).collect();
        let (mut last, mut way) = (code, Vec::new());
        // The records may form a cycle.
        while let Some(to) = changed.get(last).filter(|_| way.len() < records.len()) {
            way.push(Recoded { from: last.to_owned(), to: (*to).to_owned() });
            last = to;
        }
        let found = if last == code { None } else { self.info(last).await? };
        Ok((found, way))
    }

    async fn info(&self, code: &str) -> Result<Option<Pad>, Unreachable> {
        let ask = InfosQuery { page: 1, rows: ROWS_REFUSED, pad_codes: vec![code.to_owned()] };
        match self.lists.infos(&ask).await {
            Err(NoList::NoSuchPad) => Ok(None),
            rows => Ok(rows.map_err(to_unreachable)?.pads.into_iter().find(|pad| pad.code() == code)),
        }
    }

    async fn seats(&self, ask: &SeatsQuery) -> Result<PadRows, Unreachable> {
        match self.lists.user_pad_list(ask).await {
            Err(NoList::NoSuchPad | NoList::Unsupported) => Ok(PadRows::default()),
            rows => rows.map_err(to_unreachable),
        }
    }

    /// The documents describe no pages; this reads them if an answer is paged.
    async fn all_seats(&self) -> Result<Vec<Pad>, Unreachable> {
        let (mut ask, mut all) = (SeatsQuery::default(), Collected::default());
        for page in 1..=PAGES_MAX {
            let rows = self.seats(&ask).await?;
            let is_paged = rows.paged;
            if !all.add(rows)? || !is_paged {
                return Ok(all.into_pads());
            }
            (ask.page, ask.rows) = (Some(page + 1), Some(ROWS));
        }
        Err(endless())
    }

    async fn infos(&self) -> Result<Vec<Pad>, Unreachable> {
        loop {
            let small = self.has_small_pages.load(Relaxed);
            let rows = if small { ROWS_REFUSED } else { ROWS };
            if let Some(pads) = self.infos_by(rows).await? {
                return Ok(pads);
            }
            self.has_small_pages.store(true, Relaxed);
        }
    }

    /// Returns `None` if the platform does not accept this many rows.
    async fn infos_by(&self, rows: u32) -> Result<Option<Vec<Pad>>, Unreachable> {
        let mut all = Collected::default();
        let mut short = false;
        for page in 1..=PAGES_MAX {
            let answer = match self.lists.infos(&InfosQuery { page, rows, pad_codes: Vec::new() }).await {
                Err(NoList::Refused(_)) if rows > ROWS_REFUSED => return Ok(None),
                answer => answer.map_err(to_unreachable)?,
            };
            let count = answer.count;
            if !all.add(answer)? {
                return Ok(Some(all.into_pads()));
            }
            if short && rows > ROWS_REFUSED {
                // Pages are cut, because a short one was not the last. Rows may be missing.
                return Ok(None);
            }
            short = count < rows as usize;
        }
        Err(endless())
    }

    async fn records(&self) -> Result<Vec<Recoded>, Unreachable> {
        match self.lists.change_records().await {
            Ok(CodeChanges(changes)) => Ok(changes),
            Err(NoList::Unsupported) => Ok(Vec::new()),
            Err(error) => Err(to_unreachable(error)),
        }
    }

    async fn all(&self) -> Result<Vec<Pad>, Unreachable> {
        let infos = self.infos().await?;
        let mut seats: BTreeMap<String, Vec<Pad>> = BTreeMap::new();
        for row in self.all_seats().await? {
            seats.entry(row.code().to_owned()).or_default().push(row);
        }
        let mut pads = Vec::with_capacity(infos.len());
        for info in infos {
            match seats.remove(info.code()) {
                None => pads.push(info),
                Some(rows) => pads.extend(rows.into_iter().map(|row| info.clone().or(row))),
            }
        }
        pads.extend(seats.into_values().flatten());
        pads.retain(|pad| !pad.is_deleted());
        Ok(pads)
    }
}

impl<L: Lists> Source<Pad> for Listing<L> {
    fn list(&self) -> BoxFuture<'_, Result<Vec<Pad>, Unreachable>> {
        Box::pin(self.all())
    }

    fn code_changes(&self) -> BoxFuture<'_, Result<Vec<Recoded>, Unreachable>> {
        Box::pin(self.records())
    }

    fn pause_end(&self) -> Option<Timestamp> {
        self.lists.pause_end()
    }
}

/// The rows so far. Pages shift while they are read, so a row can come twice. The later one counts.
#[derive(Default)]
struct Collected(BTreeMap<(String, Option<String>), Pad>);

impl Collected {
    fn add(&mut self, page: PadRows) -> Result<bool, Unreachable> {
        if page.pads.is_empty() && page.count > 0 {
            return Err(Unreachable("no row of a page has a code of a pad".into()));
        }
        let before = self.0.len();
        self.0.extend(page.pads.into_iter().map(|pad| ((pad.code().to_owned(), pad.serial()), pad)));
        if self.0.len() > PADS_MAX { Err(endless()) } else { Ok(self.0.len() > before) }
    }

    fn into_pads(self) -> Vec<Pad> {
        self.0.into_values().collect()
    }
}

fn endless() -> Unreachable {
    Unreachable(format!("a list has more than {PADS_MAX} pads, or does not end").into())
}

fn to_unreachable(error: NoList) -> Unreachable {
    match error {
        NoList::Unsupported => Unreachable("the platform does not have this call".into()),
        NoList::NoSuchPad => Unreachable("the platform has no such pad, and none was asked for".into()),
        NoList::Refused(why) | NoList::Failed(why) => why,
    }
}

#[cfg(test)]
mod tests;
