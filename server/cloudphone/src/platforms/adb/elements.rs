//! Reads the list of `uiautomator`: what is on a screen, in the words of apps. Start at [`parse`].

use crate::phones::contract::{ElementKind, Pixel, ScreenElement};
use crate::phones::port::ELEMENTS_MAX;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use std::collections::HashMap;

/// A node of Android has about twenty, and the cost of reading them grows with their square.
const ATTRIBUTES_MAX: usize = 64;

/// Returns what can be touched and what has a label: at most [`ELEMENTS_MAX`] and one more. `None`
/// if the list is no whole document, or names an entity of its own.
pub(super) fn parse(list: &[u8]) -> Option<Vec<ScreenElement>> {
    let (mut reader, mut elements, mut depth) = (Reader::from_reader(list), Vec::new(), 0_u32);
    let mut has_node = false;
    loop {
        match reader.read_event().ok()? {
            Event::DocType(_) => return None,
            Event::Empty(node) => {
                has_node = true;
                elements.extend(element(&node)?);
            }
            Event::Start(node) => {
                (has_node, depth) = (true, depth + 1);
                elements.extend(element(&node)?);
            }
            Event::End(_) => depth -= 1,
            Event::Eof => return (depth == 0 && has_node).then_some(elements),
            _ => {}
        }
        elements.truncate(ELEMENTS_MAX + 1);
    }
}

/// Returns `None` if the node is malformed, and `Some(None)` if it is nothing for a finger or an
/// eye.
fn element(node: &BytesStart<'_>) -> Option<Option<ScreenElement>> {
    let mut values = HashMap::new();
    for (number, attribute) in node.attributes().enumerate() {
        let attribute = attribute.ok().filter(|_| number < ATTRIBUTES_MAX)?;
        values.insert(
            attribute.key.as_ref().to_vec(),
            attribute.normalized_value(XmlVersion::Implicit1_0).ok()?.into_owned(),
        );
    }
    let value = |name: &str| values.get(name.as_bytes()).map_or("", String::as_str);
    let is = |name: &str| value(name) == "true";
    let label = [value("text"), value("content-desc")].into_iter().find(|label| !label.is_empty()).unwrap_or_default();
    let can_be_touched = ["clickable", "long-clickable", "checkable"].into_iter().any(is);
    let kind = match value("class").rsplit('.').next().unwrap_or_default() {
        class if class.ends_with("EditText") => ElementKind::Field,
        _ if is("checkable") => ElementKind::Switch,
        class if class.ends_with("Button") => ElementKind::Button,
        class if class.ends_with("ImageView") => ElementKind::Image,
        class if class.ends_with("TextView") => ElementKind::Text,
        _ => ElementKind::Other,
    };
    let Some((x, y)) = centre(value("bounds")).filter(|_| can_be_touched || !label.is_empty()) else {
        return Some(None);
    };
    let label = if is("password") { "" } else { label };
    Some(Some(ScreenElement { kind, label: label.into(), on: is("checkable").then(|| is("checked")), x, y }))
}

/// Takes bounds such as `[0,63][1080,210]`. Returns `None` for an area that cannot be touched.
fn centre(bounds: &str) -> Option<(Pixel, Pixel)> {
    let (first, last) = bounds.strip_prefix('[')?.strip_suffix(']')?.split_once("][")?;
    let point = |point: &str| -> Option<(i64, i64)> {
        let (x, y) = point.split_once(',')?;
        Some((i64::from(x.parse::<i32>().ok()?), i64::from(y.parse::<i32>().ok()?)))
    };
    let ((left, top), (right, bottom)) = (point(first)?, point(last)?);
    let middle = |from: i64, to: i64| (from < to).then(|| Pixel::new((from + to) / 2).ok()).flatten();
    middle(left, right).zip(middle(top, bottom))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(rest: &str) -> String {
        format!(r#"<node class="android.widget.TextView" bounds="[0,0][10,20]" {rest} />"#)
    }

    fn list(inner: &str) -> String {
        format!("<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy rotation=\"0\">{inner}</hierarchy>")
    }

    #[test]
    fn an_element_has_its_kind_its_centre_and_the_label_that_is_no_password() {
        let inner = [
            r#"<node class="android.widget.FrameLayout" bounds="[0,0][1080,2400]" clickable="false" text="">"#,
            r#"<node class="android.widget.Button" bounds="[100,200][300,260]" clickable="true" text="" content-desc="A &amp; &#x42;" />"#,
            r#"<node class="android.widget.EditText" bounds="[0,0][10,10]" clickable="true" text="open-sesame" password="true" />"#,
            r#"<node class="android.widget.Switch" bounds="[0,0][4,4]" checkable="true" checked="true" text="Wi-Fi" />"#,
            r#"<node class="android.view.View" bounds="[0,0][0,0]" clickable="true" text="nowhere" />"#,
            r#"<node class="android.view.View" bounds="[-20,0][10,0]" clickable="true" text="nowhere" />"#,
            "</node>",
        ];
        let found = parse(list(&inner.concat()).as_bytes()).unwrap();
        let found: Vec<_> =
            found.iter().map(|one| (one.kind, one.label.as_str(), one.on, one.x.get(), one.y.get())).collect();
        let expected = [
            (ElementKind::Button, "A & B", None, 200, 230),
            (ElementKind::Field, "", None, 5, 5),
            (ElementKind::Switch, "Wi-Fi", Some(true), 2, 2),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_hostile_list_is_bounded_or_refused() {
        let bomb = r#"<!DOCTYPE b [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>"#;
        let whole = list(&node(r#"text="a""#));
        for refused in [
            bomb.to_owned() + &list(&node(r#"text="&b;""#)),
            list(&node(r#"text="&b;""#)),
            list(&node(r#"text="a" text="b""#)),
            whole[..whole.len() - 1].to_owned(),
            whole.replace("</hierarchy>", ""),
            whole.replace("</hierarchy>", "</node>"),
            String::new(),
            "no list".to_owned(),
            list(&node(&(0..20_000).map(|number| format!("a{number}=\"\" ")).collect::<String>())),
        ] {
            assert_eq!(parse(refused.as_bytes()), None, "{}", &refused[..refused.len().min(200)]);
        }
        let deep = "<node>".repeat(100_000) + &"</node>".repeat(100_000);
        assert_eq!(parse(list(&deep).as_bytes()).unwrap(), []);
        let many = parse(list(&node(r#"text="a""#).repeat(10_000)).as_bytes()).unwrap();
        assert_eq!(many.len(), ELEMENTS_MAX + 1);
        let label = parse(list(&node(&format!("text=\"\u{202e}{}\"", "long".repeat(99)))).as_bytes()).unwrap();
        assert!(label[0].label.as_str().chars().count() <= 64 && !label[0].label.as_str().contains('\u{202e}'));
    }
}
