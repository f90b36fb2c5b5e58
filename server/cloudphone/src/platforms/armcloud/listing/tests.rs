//! Lists from platforms whose pages are irregular.

use super::*;
use crate::phones::contract::DeviceId;
use crate::phones::port::PlatformName;
use crate::platforms::armcloud::api::tests::platform::{Platform, PlatformAct};
use crate::platforms::armcloud::api::tests::{LONG, api_within};
use crate::platforms::armcloud::sign::Scheme;
use std::sync::Mutex;
use std::time::Duration;
use toolwarrant::base::json;
use toolwarrant::files::ServiceFiles;
use toolwarrant_memory::Memory;

#[derive(Clone, Default)]
struct State {
    infos: Vec<String>,
    /// `None`: HTTP 404.
    seats: Option<Vec<(i64, String)>>,
    seats_paged: bool,
    pages: Pages,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Pages {
    #[default]
    Whole,
    Refused,
    Cut,
    CutAfterThePlace,
    Endless,
    Same,
    /// The first pad is removed before the second page.
    Shift,
}

fn accept(data: Value) -> PlatformAct {
    PlatformAct::json(200, json!({"code": 200, "data": data}))
}

fn refuse(code: i64) -> PlatformAct {
    PlatformAct::json(200, json!({"code": code, "msg": "m"}))
}

impl State {
    fn answer(&mut self, request: &str) -> PlatformAct {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let body: Value = json::read(body).unwrap();
        let call = head.split(' ').nth(1).unwrap().rsplit('/').next();
        match call {
            Some("infos") => self.infos(&body),
            _ => self.user_pad_list(&body),
        }
        .unwrap_or_else(|| PlatformAct::html(404))
    }

    fn infos(&mut self, body: &Value) -> Option<PlatformAct> {
        let row = |code: &String| json!({"padCode": code, "padStatus": 10});
        if let Some([asked]) = body["padCodes"].as_array().map(Vec::as_slice) {
            let found = self.infos.iter().find(|code| asked == *code);
            return Some(found.map_or(refuse(2020), |code| accept(json!([{"padCode": "OTHER"}, row(code)]))));
        }
        let [page, rows] = ["page", "rows"].map(|name| body[name].as_u64().unwrap() as usize);
        if self.pages == Pages::Shift && page == 2 {
            self.infos.remove(0);
        }
        let is_large = rows > 100;
        let (size, from) = match self.pages {
            Pages::Refused if is_large => return Some(refuse(100_000)),
            Pages::Cut if is_large => (100, (page - 1) * 100),
            Pages::CutAfterThePlace => (rows.min(100), (page - 1) * rows),
            Pages::Same => (rows, 0),
            _ => (rows, (page - 1) * rows),
        };
        let codes = match self.pages {
            Pages::Endless => (from..from + size).map(|number| format!("E{number}")).collect(),
            _ => self.infos.iter().skip(from).take(size).cloned().collect::<Vec<_>>(),
        };
        let rows: Vec<_> = codes.iter().map(row).collect();
        // The sizes and totals are wrong.
        Some(accept(json!({"rows": rows.len(), "size": 1, "total": 1, "totalPage": 1, "pageData": rows})))
    }

    fn user_pad_list(&self, body: &Value) -> Option<PlatformAct> {
        let asked = |(seat, code): &&(i64, String)| {
            let is_seat = body["equipmentIds"].as_array().is_none_or(|asked| asked.contains(&json!(seat)));
            is_seat && body["padCode"].as_str().is_none_or(|asked| asked == code)
        };
        let skip = body["page"].as_u64().map_or(0, |page| (page as usize - 1) * 2);
        let take = if self.seats_paged { 2 } else { usize::MAX };
        let row = |(seat, code): &(i64, String)| json!({"padCode": code, "equipmentId": seat, "cvmStatus": 100});
        let rows: Vec<_> = self.seats.as_ref()?.iter().filter(asked).skip(skip).take(take).map(row).collect();
        Some(accept(if self.seats_paged { json!({"records": rows}) } else { json!(rows) }))
    }
}

struct Fixture {
    listing: Listing,
    platform: Platform,
    state: Arc<Mutex<State>>,
}

impl Fixture {
    fn count(&self, call: &str) -> usize {
        let start = format!("POST /vcpcloud/api/padApi/{call} ");
        self.platform.requests().iter().filter(|request| request.starts_with(&start)).count()
    }
}

async fn fixture(state: State) -> Fixture {
    let state = Arc::new(Mutex::new(state));
    let shared = state.clone();
    let platform = Platform::respond(move |_, request| shared.lock().unwrap().answer(request)).await;
    Fixture { listing: listing(&platform), platform, state }
}

fn listing(platform: &Platform) -> Listing {
    Listing::new(Arc::new(api_within(platform, Scheme::V4, LONG).0))
}

fn codes(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("AC{n:05}")).collect()
}

fn seats(pairs: &[(i64, &str)]) -> Option<Vec<(i64, String)>> {
    Some(pairs.iter().map(|(seat, code)| (*seat, (*code).to_owned())).collect())
}

fn describe_pads(pads: &[Pad]) -> String {
    let one = |pad: &Pad| pad.serial().map_or_else(|| pad.code().to_owned(), |seat| format!("{}@{seat}", pad.code()));
    pads.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn the_list_is_complete_with_every_kind_of_paging() {
    for (count, pages, calls) in [
        (0, Pages::Whole, 1),
        (7, Pages::Whole, 2),
        (1_000, Pages::Whole, 2),
        (2_500, Pages::Whole, 4),
        (250, Pages::Refused, 1 + 4),
        (250, Pages::Cut, 2 + 4),
        (1_250, Pages::CutAfterThePlace, 2 + 14),
        (80, Pages::Cut, 2),
        (500, Pages::Same, 2),
    ] {
        let fixture = fixture(State { infos: codes(count), pages, ..State::default() }).await;
        let pads = fixture.listing.list().await.unwrap();
        assert_eq!(pads.iter().map(Pad::code).collect::<Vec<_>>(), codes(count), "{count}");
        assert_eq!(fixture.count("infos"), calls, "{count}");
        fixture.listing.list().await.unwrap();
        assert!(fixture.count("infos") <= 2 * calls, "the size that the platform takes is kept");
    }
    let fixture = fixture(State { infos: codes(2_500), pages: Pages::Shift, ..State::default() }).await;
    // The pad that moved to the previous page is missed once; another list has it.
    assert_eq!(fixture.listing.list().await.unwrap().len(), 2_499);
}

#[tokio::test]
async fn an_incomplete_list_is_an_error_and_only_a_request_that_is_not_taken_is_tried_in_another_form() {
    let endless = fixture(State { pages: Pages::Endless, ..State::default() }).await;
    let Unreachable(why) = endless.listing.list().await.unwrap_err();
    assert_eq!(why.as_str(), "a list has more than 100000 pads, or does not end");
    for (act, expected, calls) in [
        (accept(json!({"pageData": [{"pad": 1}, {"pad": 2}]})), "no row of a page has a code of a pad", 1),
        (refuse(2019), "code 2019: m", 1),
        (refuse(100_001), "code 100001: m; ask the vendor to allow these calls on this account", 2),
        (refuse(2020), "code 2020: m; see that base-url, prefix, signing and both keys are those of the account", 2),
        (PlatformAct::html(404), "status 404 and no answer in the platform's form", 1),
    ] {
        let platform = Platform::respond(move |_, _| act.clone()).await;
        let Unreachable(why) = listing(&platform).list().await.unwrap_err();
        assert_eq!((why.as_str(), platform.requests().len()), (expected, calls));
    }
}

#[tokio::test]
async fn names_and_seats_come_from_the_list_of_seats_and_no_pad_of_either_list_is_lost() {
    let of_three = seats(&[(1, "AC00000"), (2, "AC00001"), (9, "AC9")]);
    // The ledger sees that two seats of one pad contradict each other.
    let contradictory = seats(&[(1, "AC00000"), (2, "AC00000")]);
    for (count, seats, seats_paged, shown, calls) in [
        (3, of_three.clone(), false, "AC00000@1 AC00001@2 AC00002 AC9@9", 1),
        (3, of_three, true, "AC00000@1 AC00001@2 AC00002 AC9@9", 3),
        (1, contradictory, false, "AC00000@1 AC00000@2", 1),
    ] {
        let fixture = fixture(State { infos: codes(count), seats, seats_paged, ..State::default() }).await;
        assert_eq!(describe_pads(&fixture.listing.list().await.unwrap()), shown);
        assert_eq!(fixture.count("userPadList"), calls, "a list without pages is read once");
    }
}

#[tokio::test]
async fn one_pad_is_found_by_its_seat_or_its_code() {
    let with_seats = |infos: &[&str], pairs: &[(i64, &str)]| State {
        infos: infos.iter().map(|code| (*code).to_owned()).collect(),
        seats: seats(pairs),
        ..State::default()
    };
    let without = |infos: &[&str]| State { seats: None, ..with_seats(infos, &[]) };
    for (known, state, found) in [
        (r#"{"padCode":"A","equipmentId":1}"#, with_seats(&["A", "B"], &[(1, "A"), (2, "B")]), "A@1"),
        (r#"{"padCode":"A","equipmentId":1}"#, with_seats(&["A", "B"], &[(1, "B"), (2, "A")]), "B@1"),
        (r#"{"padCode":"A","equipmentId":1}"#, with_seats(&["B"], &[(1, "B")]), "B@1"),
        (r#"{"padCode":"A","equipmentId":1}"#, with_seats(&[], &[(1, "B")]), "B@1"),
        (r#"{"padCode":"A","equipmentId":1}"#, with_seats(&["A"], &[]), "A"),
        (r#"{"padCode":"A","equipmentId":1}"#, with_seats(&["B"], &[]), "gone"),
        (r#"{"padCode":"A"}"#, with_seats(&["A"], &[(1, "A")]), "A@1"),
        (r#"{"padCode":"A"}"#, without(&["A"]), "A"),
        (r#"{"padCode":"A"}"#, without(&["B"]), "gone"),
    ] {
        let known: Pad = json::read(known).unwrap();
        let read = fixture(state).await.listing.read_one(&known).await.unwrap();
        let described = read.map_or_else(|| "gone".to_owned(), |pad| describe_pads(&[pad]));
        assert_eq!(described, found, "{known:?}");
    }
}

#[test]
fn a_deleted_pad_is_none() {
    let deleted = r#"[{"padCode":"A","padStatus":25},{"padCode":"B","padStatus":-1},{"padCode":"C","padStatus":24}]"#;
    let Rows { rows, .. } = json::read::<Rows<Pad>>(deleted).unwrap();
    assert_eq!(rows.iter().map(Pad::is_deleted).collect::<Vec<_>>(), [true, true, false]);
}

#[tokio::test]
async fn a_phone_that_is_read_again_is_the_one_of_its_id_or_an_error() {
    let clock = Clock::manual(Timestamp(1_000_000));
    let files = ServiceFiles::open(Arc::new(Memory::default())).await.unwrap();
    let ledger = PhoneLedger::open(&files, PlatformName::parse("n").unwrap(), clock.clone());
    let Fixture { listing, platform: _platform, state } = fixture(State { infos: codes(2), ..State::default() }).await;
    ledger.take(listing.list().await.unwrap(), clock.now()).await;
    // The seat of the first pad has the second one, which is another known phone.
    state.lock().unwrap().infos.remove(0);
    clock.advance(Duration::from_secs(1));
    let [first, second] = ["n-ac00000", "n-ac00001"].map(|id| ledger.get(&DeviceId::new(id).ok().unwrap()).unwrap());
    assert!(listing.reread(&ledger, &first, &clock).await.is_err());
    assert!(listing.reread(&ledger, &second, &clock).await.is_ok());
}
