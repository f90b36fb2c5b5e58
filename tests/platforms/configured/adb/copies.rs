//! Two emulators of one image: what one of them shows after a start leads no write to the other.

use super::super::{FAST, Site, end, id, list_all, until};
use super::{restart, table_of};
use crate::harness::double::Double;
use crate::harness::program::Program;
use serde_json::json;

#[tokio::test]
async fn a_copy_that_starts_again_takes_no_write_of_the_phone_that_it_is_a_copy_of() {
    let restart_in_turn = async |is_lower_seen_first: bool| {
        let Copies { double, site, program, first, copy } = &Copies::start(is_lower_seen_first).await;
        for (number, code) in [copy, first, copy, first].into_iter().enumerate() {
            let ended = end(program, "set_power", restart(&id("rack", code))).await;
            assert_eq!(ended["status"], "success", "{ended}");
            // It reads the list.
            until(async || site.operate("platform check rack").await.1.contains("2 phones, of which 2 run")).await;
            let done = [double.count_restarts(copy).await, double.count_restarts(first).await];
            assert_eq!(done, [number / 2 + 1, number.div_ceil(2)], "restarts of the copy and of the first phone");
        }
    };
    tokio::join!(restart_in_turn(false), restart_in_turn(true));
}

#[tokio::test]
async fn a_copy_that_may_be_the_phone_that_is_away_gets_no_write_until_both_are_there() {
    let Copies { double, site, program, first, copy } = &Copies::start(true).await;
    double.switch(Some(first), &json!({"adb_state": "offline"})).await;
    double.post(&format!("pads/{copy}/act/reboot")).await.expect("it starts again");
    let unclear = "it is not clear which of two phones this is, because one is a copy";
    until(async || site.operate("platform check rack").await.1.contains(unclear)).await;
    let before = double.count_restarts(copy).await;
    for code in [first, copy] {
        let refused = program.call("set_power", restart(&id("rack", code))).await.expect_err("it is not certain");
        assert!(code == first || refused.to_string().contains(unclear), "{refused}");
    }
    double.switch(Some(first), &json!({})).await;
    until(async || site.operate("platform check rack").await.1.contains("2 phones, of which 2 run")).await;
    assert_eq!([double.count_restarts(copy).await, double.count_restarts(first).await], [before, 0]);
    let ended = end(program, "set_power", restart(&id("rack", first))).await;
    assert_eq!((&ended["status"], double.count_restarts(first).await), (&json!("success"), 1), "{ended}");
}

/// Two emulators of one image. The copy has started after the first one was known.
struct Copies {
    double: Double,
    site: Site,
    program: Program,
    first: String,
    copy: String,
}

impl Copies {
    async fn start(is_lower_seen_first: bool) -> Self {
        let (double, site) = (Double::start(2, FAST).await, Site::new());
        let mut codes = double.codes().await;
        if !is_lower_seen_first {
            codes.reverse();
        }
        let [first, copy] = <[String; 2]>::try_from(codes).expect("two phones");
        double.switch(Some(&copy), &json!({"adb_state": "absent"})).await;
        site.configure(&table_of(&double, &json!(["*"])));
        let program = site.start(1, &[]).await;
        until(async || list_all(&program).await[0]["state"] == "running").await;
        double.switch(Some(&copy), &json!({"adb_copy_of": first})).await;
        until(async || site.operate("platform check rack").await.1.contains("2 phones, of which 2 run")).await;
        Self { double, site, program, first, copy }
    }
}
