//! Reads the whole list of pads, or one pad again, from the platform's calls.
//!
//! `infos` has every pad, in pages. `userPadList` has names and seats, on VMOS Cloud and VSPhone.
//! Totals and sizes in the answers are not trusted: only a page without a new pad is the last. An
//! incomplete list is an error, because missing pads would count as gone. Start at [`Listing`].

use super::api::{Api, ApiCall, ApiError, Rows};
use super::rows::Pad;
use crate::adapter_kit::phone_ledger::refresh::Source;
use crate::adapter_kit::phone_ledger::{Listed, PhoneLedger, Row};
use crate::phones::port::Unreachable;
use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use toolwarrant::{Clock, Timestamp};

/// The most that ARMCloud accepts.
const ROWS: u32 = 1_000;

/// For platforms that refuse or cut larger pages.
const ROWS_REFUSED: u32 = 100;

const PAGES_MAX: u32 = 1_000;

const PADS_MAX: usize = 100_000;

pub struct Listing {
    api: Arc<Api>,
    /// Pages of [`ROWS`] were refused or cut.
    has_small_pages: AtomicBool,
}

impl Listing {
    #[must_use]
    pub fn new(api: Arc<Api>) -> Self {
        Self { api, has_small_pages: AtomicBool::new(false) }
    }

    /// Updates the ledger. One answer without the phone is an error, but no evidence that the phone
    /// is gone: two lists in a row are.
    pub async fn reread(
        &self,
        ledger: &PhoneLedger<Pad>,
        known: &Listed<Pad>,
        clock: &Clock,
    ) -> Result<(), Unreachable> {
        let began = clock.now();
        let read = self.read_one(&known.row).await?;
        let pad = read.ok_or_else(|| Unreachable("the platform does not show the phone".into()))?;
        ledger.note(pad, began).await;
        match ledger.get(&known.id) {
            Some(listed) if listed.read_at >= began => Ok(()),
            _ => Err(Unreachable("the platform shows another phone, or a list was not stored".into())),
        }
    }

    /// Finds a pad whose code has changed by its seat.
    async fn read_one(&self, known: &Pad) -> Result<Option<Pad>, Unreachable> {
        let code = known.code();
        let seat = known.serial().and_then(|seat| seat.parse::<i64>().ok());
        let of_seat = seat.map_or_else(|| json!({"padCode": code}), |seat| json!({"equipmentIds": [seat]}));
        let (info, seats) = tokio::join!(self.info(code), self.rows::<Pad>(ApiCall::UserPadList, &of_seat));
        let (info, seats) = (info?, seats.map_err(to_unreachable)?);
        let is_it = |row: &Pad| if seat.is_some() { row.serial() == known.serial() } else { row.code() == code };
        let found = match seats.rows.into_iter().find(is_it) {
            Some(row) if row.code() == code => Some(join(info, row)),
            Some(row) => Some(join(self.info(row.code()).await?, row)),
            None => info,
        };
        Ok(found.filter(|pad| !pad.is_deleted()))
    }

    async fn info(&self, code: &str) -> Result<Option<Pad>, Unreachable> {
        let body = json!({"page": 1, "rows": ROWS_REFUSED, "padCodes": [code]});
        match self.rows(ApiCall::Infos, &body).await {
            Err(error) if error.is_missing_pad() => Ok(None),
            Err(error) => Err(to_unreachable(error)),
            Ok(answer) => Ok(answer.rows.into_iter().find(|pad: &Pad| pad.code() == code)),
        }
    }

    async fn all(&self) -> Result<Vec<Pad>, Unreachable> {
        let infos = self.pages(ApiCall::Infos).await?;
        let mut seats: BTreeMap<String, Vec<Pad>> = BTreeMap::new();
        for row in self.pages(ApiCall::UserPadList).await? {
            seats.entry(row.code().to_owned()).or_default().push(row);
        }
        let mut pads = Vec::with_capacity(infos.len());
        for info in infos {
            match seats.remove(info.code()) {
                None => pads.push(info),
                Some(rows) => pads.extend(rows.into_iter().map(|row| join(Some(info.clone()), row))),
            }
        }
        pads.extend(seats.into_values().flatten());
        pads.retain(|pad| !pad.is_deleted());
        Ok(pads)
    }

    /// Reads a whole list. Pages shift while they are read, so a row can come twice, and the later
    /// one counts. The documents describe no pages of seats; this reads them if an answer is paged.
    async fn pages(&self, call: ApiCall) -> Result<Vec<Pad>, Unreachable> {
        let is_infos = call == ApiCall::Infos;
        let has_small_pages = self.has_small_pages.load(Relaxed);
        let may_shrink = is_infos && !has_small_pages;
        let rows = if has_small_pages { ROWS_REFUSED } else { ROWS };
        let (mut all, mut is_short) = (BTreeMap::new(), false);
        for page in 1..=PAGES_MAX {
            let body = if is_infos || page > 1 { json!({"page": page, "rows": rows}) } else { json!({}) };
            let answer = match self.rows::<Pad>(call, &body).await {
                Err(error) if may_shrink && error.is_refused() => return self.shrink_pages(call).await,
                answer => answer.map_err(to_unreachable)?,
            };
            if answer.rows.is_empty() && answer.count > 0 {
                return Err(Unreachable("no row of a page has a code of a pad".into()));
            }
            let before = all.len();
            all.extend(answer.rows.into_iter().map(|pad| ((pad.code().to_owned(), pad.serial()), pad)));
            if all.len() == before || !(is_infos || answer.paged) {
                return Ok(all.into_values().collect());
            }
            if all.len() > PADS_MAX {
                break;
            }
            if may_shrink && is_short {
                // Pages are cut, because a short one was not the last. Rows may be missing.
                return self.shrink_pages(call).await;
            }
            is_short = answer.count < rows as usize;
        }
        Err(Unreachable(format!("a list has more than {PADS_MAX} pads, or does not end").into()))
    }

    async fn shrink_pages(&self, call: ApiCall) -> Result<Vec<Pad>, Unreachable> {
        self.has_small_pages.store(true, Relaxed);
        Box::pin(self.pages(call)).await
    }

    /// Reads an answer. One that says that there is no such pad has no rows, and neither has a list
    /// that the platform does not serve. Without `infos`, nobody knows the pads.
    async fn rows<T: DeserializeOwned>(&self, call: ApiCall, body: &Value) -> Result<Rows<T>, ApiError> {
        let answer = self.api.read(call, body).await;
        let is_nothing =
            |error: &ApiError| call != ApiCall::Infos && (error.is_missing_pad() || error.is_unsupported());
        answer.or_else(|error| if is_nothing(&error) { Ok(Rows::default()) } else { Err(error) })
    }
}

#[async_trait]
impl Source<Pad> for Listing {
    async fn list(&self) -> Result<Vec<Pad>, Unreachable> {
        self.all().await
    }

    fn pause_end(&self) -> Option<Timestamp> {
        self.api.guard.would_refuse()?.until()
    }
}

fn join(info: Option<Pad>, seat: Pad) -> Pad {
    match info {
        Some(info) => info.or(seat),
        None => seat,
    }
}

fn to_unreachable(error: ApiError) -> Unreachable {
    let remedy = if error.is_refused() { format!("; {}", error.remedy()) } else { String::new() };
    Unreachable(format!("{}{remedy}", error.why().as_str()).into())
}

#[cfg(test)]
mod tests;
