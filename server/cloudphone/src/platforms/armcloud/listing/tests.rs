//! Lists from platforms whose pages are irregular.

use super::*;
use crate::phones::contract::DeviceId;
use crate::phones::port::PlatformName;
use serde_json::json;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use toolwarrant::Timestamp;
use toolwarrant::base::json;
use toolwarrant::files::ServiceFiles;
use toolwarrant_memory::Memory;

#[derive(Default)]
struct FakeLists(Mutex<State>);

#[derive(Clone, Default)]
struct State {
    infos: Vec<String>,
    /// `None`: HTTP 404.
    seats: Option<Vec<(i64, String)>>,
    seats_paged: bool,
    records: Option<Vec<(&'static str, &'static str)>>,
    rows_max: RowsMax,
    endless: bool,
    same: bool,
    /// The page before which the first pad is removed.
    shifts: Option<u32>,
    garbage: bool,
    down: bool,
    calls: Vec<&'static str>,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum RowsMax {
    #[default]
    Taken,
    Refused,
    Cut,
    CutAfterThePlace,
}

impl FakeLists {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

fn rows(data: serde_json::Value) -> Result<PadRows, NoList> {
    Ok(json::read(&data.to_string()).unwrap())
}

impl Lists for FakeLists {
    fn infos<'a>(&'a self, ask: &'a InfosQuery) -> BoxFuture<'a, Result<PadRows, NoList>> {
        let mut state = self.state();
        state.calls.push("infos");
        Box::pin(std::future::ready(state.infos(ask)))
    }

    fn user_pad_list<'a>(&'a self, ask: &'a SeatsQuery) -> BoxFuture<'a, Result<PadRows, NoList>> {
        let mut state = self.state();
        state.calls.push("seats");
        Box::pin(std::future::ready(state.user_pad_list(ask)))
    }

    fn change_records(&self) -> BoxFuture<'_, Result<CodeChanges, NoList>> {
        let mut state = self.state();
        state.calls.push("records");
        let records = state.records.clone().ok_or(NoList::Unsupported);
        let record = |(from, to): (&str, &str)| Recoded { from: from.into(), to: to.into() };
        Box::pin(std::future::ready(records.map(|all| CodeChanges(all.into_iter().map(record).collect()))))
    }

    fn pause_end(&self) -> Option<Timestamp> {
        None
    }
}

impl State {
    fn infos(&mut self, ask: &InfosQuery) -> Result<PadRows, NoList> {
        let InfosQuery { page, rows: asked, pad_codes } = ask;
        if self.down {
            return Err(NoList::Failed(Unreachable("it is down".into())));
        }
        if !pad_codes.is_empty() {
            let found = self.infos.iter().filter(|code| pad_codes.contains(code));
            let found: Vec<_> = found.map(|code| json!({"padCode": code, "padStatus": 10})).collect();
            if found.is_empty() {
                return Err(NoList::NoSuchPad);
            }
            let told = [vec![json!({"padCode": "OTHER"})], found].concat();
            return rows(json!({"pageData": told}));
        }
        if self.shifts == Some(*page) {
            self.infos.remove(0);
        }
        let mut size = *asked as usize;
        let mut from = (*page as usize - 1) * size;
        match self.rows_max {
            RowsMax::Refused if size > 100 => return Err(NoList::Refused(Unreachable("rows".into()))),
            RowsMax::Cut if size > 100 => (size, from) = (100, (*page as usize - 1) * 100),
            RowsMax::CutAfterThePlace => size = size.min(100),
            _ => {}
        }
        if self.garbage {
            return rows(json!({"pageData": [{"pad": 1}, {"pad": 2}]}));
        }
        let codes: Vec<String> = match (self.endless, self.same) {
            (true, _) => (0..size).map(|n| format!("E{page}X{n}")).collect(),
            (_, true) => self.infos.iter().take(size).cloned().collect(),
            _ => self.infos.iter().skip(from).take(size).cloned().collect(),
        };
        let told: Vec<_> = codes.iter().map(|code| json!({"padCode": code, "padStatus": 10})).collect();
        // The sizes and totals are wrong.
        rows(json!({"pageData": told, "rows": told.len(), "size": 1, "total": 1, "totalPage": 1}))
    }

    fn user_pad_list(&mut self, ask: &SeatsQuery) -> Result<PadRows, NoList> {
        let Some(seats) = &self.seats else { return Err(NoList::Unsupported) };
        let SeatsQuery { page, rows: _, equipment_ids, pad_code } = ask;
        let asked = |(seat, code): &&(i64, String)| {
            (equipment_ids.is_empty() || equipment_ids.contains(seat))
                && pad_code.as_ref().is_none_or(|asked| asked == code)
        };
        let skip = page.map_or(0, |page| (page as usize - 1) * 2);
        let take = if self.seats_paged { 2 } else { usize::MAX };
        let told = seats.iter().filter(asked).skip(skip).take(take);
        let told: Vec<_> = told
            .map(|(seat, code)| json!({"padCode": code, "equipmentId": seat, "padName": format!("Seat {seat}"), "cvmStatus": 100}))
            .collect();
        rows(if self.seats_paged { json!({"records": told}) } else { json!(told) })
    }
}

fn codes(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("AC{n:05}")).collect()
}

fn seats(pairs: &[(i64, &str)]) -> Option<Vec<(i64, String)>> {
    Some(pairs.iter().map(|(seat, code)| (*seat, (*code).to_owned())).collect())
}

fn listing(state: State) -> Listing<FakeLists> {
    Listing::new(FakeLists(Mutex::new(state)))
}

fn describe_pads(pads: &[Pad]) -> String {
    let one = |pad: &Pad| pad.serial().map_or_else(|| pad.code().to_owned(), |seat| format!("{}@{seat}", pad.code()));
    pads.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn the_list_is_complete_with_every_kind_of_paging() {
    for (count, rows_max, calls) in [
        (0, RowsMax::Taken, 1),
        (7, RowsMax::Taken, 2),
        (1_000, RowsMax::Taken, 2),
        (2_500, RowsMax::Taken, 4),
        (10_000, RowsMax::Taken, 11),
        (250, RowsMax::Refused, 1 + 4),
        (250, RowsMax::Cut, 2 + 4),
        (1_250, RowsMax::CutAfterThePlace, 2 + 14),
        (80, RowsMax::Cut, 2),
    ] {
        let platform = listing(State { infos: codes(count), rows_max, ..State::default() });
        let pads = platform.list().await.unwrap();
        assert_eq!(pads.iter().map(Pad::code).collect::<Vec<_>>(), codes(count), "{count}");
        let infos = |platform: &Listing<FakeLists>| {
            platform.lists.state().calls.iter().filter(|call| **call == "infos").count()
        };
        assert_eq!(infos(&platform), calls, "{count}");
        platform.lists.state().calls.clear();
        platform.list().await.unwrap();
        assert!(infos(&platform) <= calls);
    }
}

#[tokio::test]
async fn pages_that_shift_or_repeat_bring_no_pad_twice() {
    let platform = listing(State { infos: codes(2_500), shifts: Some(2), ..State::default() });
    // The pad that moved to the previous page is missed once; another list has it.
    assert_eq!(platform.list().await.unwrap().len(), 2_499);
    let platform = listing(State { infos: codes(500), same: true, ..State::default() });
    assert_eq!(platform.list().await.unwrap().len(), 500);
}

#[tokio::test]
async fn an_incomplete_list_is_an_error() {
    for state in [
        State { endless: true, ..State::default() },
        State { infos: codes(3), garbage: true, ..State::default() },
        State { infos: codes(3), down: true, ..State::default() },
    ] {
        let Unreachable(why) = listing(state).list().await.unwrap_err();
        assert!(!why.as_str().is_empty());
    }
}

#[tokio::test]
async fn names_and_seats_come_from_the_list_of_seats_and_no_pad_of_either_list_is_lost() {
    for seats_paged in [false, true] {
        let state = State {
            infos: codes(3),
            seats: seats(&[(1, "AC00000"), (2, "AC00001"), (9, "AC9")]),
            seats_paged,
            ..State::default()
        };
        let platform = listing(state);
        let pads = platform.list().await.unwrap();
        assert_eq!(describe_pads(&pads), "AC00000@1 AC00001@2 AC00002 AC9@9");
        let asked = platform.lists.state().calls.iter().filter(|call| **call == "seats").count();
        assert_eq!(asked, if seats_paged { 3 } else { 1 }, "a list without pages is read once");
    }
    let state = State { infos: vec!["A".into()], seats: seats(&[(1, "A"), (2, "A")]), ..State::default() };
    assert_eq!(
        describe_pads(&listing(state).list().await.unwrap()),
        "A@1 A@2",
        "the ledger sees that it is contradictory"
    );
}

#[tokio::test]
async fn one_pad_is_found_by_its_seat_its_code_or_a_record() {
    let with_seats = |infos: &[&str], pairs: &[(i64, &str)]| State {
        infos: infos.iter().map(|code| (*code).to_owned()).collect(),
        seats: seats(pairs),
        ..State::default()
    };
    let without = |infos: &[&str], records| State { seats: None, records, ..with_seats(infos, &[]) };
    for (known, state, found) in [
        (r#"{"padCode":"A","equipmentId":1}"#, with_seats(&["A", "B"], &[(1, "A"), (2, "B")]), "A@1"),
        (r#"{"padCode":"A","equipmentId":1}"#, with_seats(&["A", "B"], &[(1, "B"), (2, "A")]), "B@1"),
        (r#"{"padCode":"A","equipmentId":1}"#, with_seats(&["B"], &[(1, "B")]), "B@1"),
        (r#"{"padCode":"A","equipmentId":1}"#, with_seats(&[], &[(1, "B")]), "B@1"),
        (r#"{"padCode":"A","equipmentId":1}"#, with_seats(&["A"], &[]), "A"),
        (r#"{"padCode":"A","equipmentId":1}"#, with_seats(&["B"], &[]), "gone"),
        (r#"{"padCode":"A"}"#, with_seats(&["A"], &[(1, "A")]), "A@1"),
        (r#"{"padCode":"A"}"#, without(&["A"], None), "A"),
        (r#"{"padCode":"A"}"#, without(&["B"], None), "gone"),
        (r#"{"padCode":"A"}"#, without(&["B"], Some(vec![("A", "B")])), "B A>B"),
        (r#"{"padCode":"A"}"#, without(&["C"], Some(vec![("A", "B"), ("B", "C")])), "C A>B B>C"),
        (r#"{"padCode":"A"}"#, without(&["X"], Some(vec![("A", "B"), ("B", "A")])), "gone"),
    ] {
        let known: Pad = json::read(known).unwrap();
        let described = match listing(state).read_one(&known).await.unwrap() {
            None => "gone".to_owned(),
            Some((pad, recoded)) => {
                let records = recoded.iter().map(|Recoded { from, to }| format!(" {from}>{to}"));
                describe_pads(&[pad]) + &records.collect::<String>()
            }
        };
        assert_eq!(described, found, "{known:?}");
    }
}

#[tokio::test]
async fn a_deleted_pad_is_none() {
    let deleted = r#"[{"padCode":"A","padStatus":25},{"padCode":"B","padStatus":-1},{"padCode":"C","padStatus":24}]"#;
    let PadRows { pads, .. } = json::read(deleted).unwrap();
    assert_eq!(pads.iter().map(Pad::is_deleted).collect::<Vec<_>>(), [true, true, false]);
}

#[tokio::test]
async fn a_phone_that_is_read_again_is_the_one_of_its_id_or_an_error() {
    let clock = Clock::manual(Timestamp(1_000_000));
    let files = ServiceFiles::open(Arc::new(Memory::default())).await.unwrap();
    let ledger = PhoneLedger::open(&files, PlatformName::parse("n").unwrap(), clock.clone());
    let platform = listing(State { infos: codes(2), records: Some(vec![("AC00000", "AC00001")]), ..State::default() });
    ledger.take(platform.list().await.unwrap(), Vec::new(), clock.now()).await;
    // The record says that the first pad has become the second, which is another known phone.
    platform.lists.state().infos.remove(0);
    clock.advance(Duration::from_secs(1));
    let [first, second] = ["n-ac00000", "n-ac00001"].map(|id| ledger.get(&DeviceId::new(id).ok().unwrap()).unwrap());
    assert!(platform.reread(&ledger, &first, &clock).await.is_err());
    assert!(platform.reread(&ledger, &second, &clock).await.is_ok());
}
