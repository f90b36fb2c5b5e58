//! Two emulators of one image: what one of them shows after a start leads no write to the other.

use super::super::{FAST, Site, end, id, list_all, until};
use super::restart;
use crate::harness::double::Double;
use serde_json::json;

#[tokio::test]
async fn a_copy_that_starts_again_takes_no_write_of_the_phone_that_it_is_a_copy_of() {
    for is_lower_seen_first in [false, true] {
        let (double, site) = (Double::start(2, FAST).await, Site::new());
        let mut codes = double.codes().await;
        if !is_lower_seen_first {
            codes.reverse();
        }
        let [first, copy] = &codes[..] else { panic!("two phones") };
        double.switch(Some(copy), &json!({"adb_state": "absent"})).await;
        let server = double.adb();
        site.configure(&format!(
            "[platform.rack]\nkind = \"adb\"\nserver = \"{server}\"\nonly = [\"*\"]\npower-seconds = 1\n"
        ));
        let program = site.start(1, &[]).await;
        until(async || list_all(&program).await[0]["state"] == "running").await;
        double.switch(Some(copy), &json!({"adb_copy_of": first})).await;
        until(async || site.operate("platform check rack").await.1.contains("2 phones, of which 2 run")).await;
        for (number, code) in [copy, first, copy, first].into_iter().enumerate() {
            let ended = end(&program, "set_power", restart(&id("rack", code))).await;
            assert_eq!(ended["status"], "success", "{ended}");
            // It reads the list.
            until(async || site.operate("platform check rack").await.1.contains("2 phones, of which 2 run")).await;
            let done = [restarts(&double, copy).await, restarts(&double, first).await];
            assert_eq!(done, [number / 2 + 1, number.div_ceil(2)], "restarts of the copy and of the first phone");
        }
    }
}

async fn restarts(double: &Double, code: &str) -> usize {
    double.journal("did", code).await.iter().filter(|line| line["operation"] == "restart").count()
}
