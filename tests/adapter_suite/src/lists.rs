//! The promises of lists: every phone of the platform is in them, under its own name.

use crate::rig::Rig;
use serde_json::{Value, json};
use std::collections::HashMap;
use toolwarrant::text::Untrusted;

const REPORTED_MAX: usize = 10;

/// Compares what clients see before the first case with what the platform has. Returns the promises
/// that were broken.
#[expect(clippy::expect_used, reason = "a suite without answers must fail")]
pub(crate) async fn compare(rig: &Rig) -> Vec<String> {
    let phones = rig.double.phones().await;
    let (mut listed, mut cursor) = (HashMap::new(), Value::Null);
    loop {
        let mut page = rig.call("list_devices", json!({"limit": 200, "cursor": cursor})).await.expect("a page");
        let rows = page["devices"].as_array().expect("a list").iter();
        listed.extend(rows.map(|row| (text(&row["device_id"]), text(&row["name"]))));
        cursor = page["next_cursor"].take();
        if cursor.is_null() {
            break;
        }
    }
    let mut broken = Vec::new();
    let looked_at = [0, phones.len() / 2, phones.len().saturating_sub(1)];
    for (n, (id, name)) in phones.iter().enumerate() {
        let (id, name): (_, Untrusted) = (id.as_str(), Untrusted::clean(name));
        let mut shown = vec![("list_devices", listed.remove(id).ok_or_else(|| "it leaves the phone out".to_owned()))];
        if looked_at.contains(&n) {
            let seen = rig.call("get_device", json!({"device_id": id})).await;
            shown.push(("get_device", seen.map(|phone| text(&phone["name"])).map_err(|failure| failure.to_string())));
        }
        broken.extend(shown.into_iter().filter_map(|(tool, shown)| match shown {
            Ok(shown) if shown == name.as_str() => None,
            Ok(shown) => Some(format!("{tool} names {id} `{shown}`, and its own name is `{}`", name.as_str())),
            Err(why) => Some(format!("{tool} does not show {id}: {why}")),
        }));
    }
    broken.truncate(REPORTED_MAX);
    broken
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("no text").to_owned()
}
