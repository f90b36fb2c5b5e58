//! The promises of a screen.

use cloudphone::phones::contract::DeviceId;
use cloudphone::phones::port::{Platform, ScreenError, StillSize};
use serde_json::json;

/// Watches and operates a running phone. Returns the promises that were broken.
#[expect(clippy::expect_used, reason = "a suite with an input that is none must fail")]
pub async fn watch(platform: &dyn Platform, id: &DeviceId) -> Vec<String> {
    let Some(screen) = platform.screen(id) else { return vec!["the phone has no screen".to_owned()] };
    let StillSize { width, height } = match screen.still(id).await {
        Ok(still) => still.size(),
        Err(error) => return vec![format!("no picture: {error}")],
    };
    let (first, last) = (json!({"x": 0, "y": 0}), json!({"x": width - 1, "y": height - 1}));
    let swipe = json!({"swipe": {"from": last, "to": first, "milliseconds": 1}});
    let mut keys = vec!["back", "home", "recents", "enter", "backspace", "tab", "up", "down", "left", "right"];
    keys.extend(["power", "wake", "volume_up", "volume_down", "select_all"]);
    let texts = ["a", " 100% $(id) %s \\ '\"`;|&<>", "ä漢😀"].map(|text| json!({"text": text}));
    let touches = [first, last].map(|point| json!({"touch": point}));
    let keys = keys.into_iter().map(|key| json!({"key": key}));
    let nobody = DeviceId::new(&format!("{id}-nobody")).expect("an id");
    let mut broken = Vec::new();
    for input in touches.into_iter().chain([swipe]).chain(keys).chain(texts) {
        let sent = serde_json::from_value(input.clone()).expect("an input");
        if let Err(ScreenError::Unreachable(error)) = screen.input(id, &sent).await {
            broken.push(format!("{input} is neither taken nor refused: {error}"));
        }
        if screen.input(&nobody, &sent).await.is_ok() {
            broken.push(format!("a phone that does not exist takes {input}"));
        }
    }
    if screen.still(&nobody).await.is_ok() {
        broken.push("a phone that does not exist has a picture".to_owned());
    }
    broken
}
