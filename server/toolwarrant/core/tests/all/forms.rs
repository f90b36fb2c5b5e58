//! Each form of arguments and results, as a contract declares it, and hostile values of it.

use crate::notes::*;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::iter;
use toolwarrant_base::hex;
use toolwarrant_core::args::{Arguments, Nullable, Reader, parse, parse_stored};
use toolwarrant_core::outside::{UntrustedJson, UntrustedMap};

fn refusal(arguments: &str) -> String {
    parse::<PreviewNoteArgs>(arguments).expect_err(arguments).what.as_str().to_owned()
}

fn with(member: &str) -> String {
    format!(r#"{{"note_id":"n-1","edits":[],{member}}}"#)
}

fn take(member: &str) -> PreviewNoteArgs {
    parse::<PreviewNoteArgs>(&with(member)).unwrap_or_else(|why| panic!("{member}: {}", why.what)).args
}

#[test]
fn each_form_is_read_into_its_type() {
    let edits = r#"[{"oldText":"a\r\n\tb","newText":""},{"oldText":"","newText":"\u202e","mode":"ALL","note":""}]"#;
    let args = parse::<PreviewNoteArgs>(&format!(r#"{{"note_id":"n-1","edits":{edits}}}"#)).expect("edits").args;
    let [first, second] = &args.edits[..] else { panic!("{args:?}") };
    assert_eq!((first.old_text.as_str(), first.new_text.as_str(), first.mode), ("a\r\n\tb", "", Mode::First));
    assert_eq!((second.new_text.as_str(), second.mode, &second.note), ("\u{202e}", Mode::All, &None));
    assert_eq!(args.weight.get(), 0.5);

    assert_eq!(take(r#""footer":"""#).footer.expect("a value").as_str(), "");
    assert_eq!(take(r#""footer":null,"weights":null,"extra":null,"since":"""#).footer, None);
    assert_eq!(take(r#""weight":-5e-1"#).weight.get(), -0.5);
    let weights = take(r#""weights":{"a":1,"b":0.25}"#).weights.expect("a map");
    assert_eq!(
        weights.get().iter().map(|(name, weight)| (&**name, weight.get())).collect::<Vec<_>>(),
        [("a", 1.0), ("b", 0.25)]
    );
    let raw = r#"{"id": 12345678901234567890123, "a":[{}, "\u00e9"]}"#;
    assert_eq!(take(&format!(r#""extra":{raw}"#)).extra.expect("JSON").as_str(), raw);
    let outline = take(r#""outline":{"chapters":[{"sections":[{"marks":[{"line":7,"at":"2026-01-01T00:00:00Z"}]}]}]}"#);
    assert_eq!(outline.outline.expect("an outline").chapters[0].sections[0].marks[0].line, 7);
    for (sent, read) in [
        ("2026-12-31T18:00:00Z", "2026-12-31T18:00:00.000Z"),
        ("2026-12-31t18:00:00.5z", "2026-12-31T18:00:00.500Z"),
        ("2026-12-31T18:00:00.123456789-05:30", "2026-12-31T23:30:00.123Z"),
    ] {
        assert_eq!(take(&format!(r#""since":"{sent}""#)).since.expect("a time").to_string(), read);
    }
}

#[test]
fn parts_that_are_sent_as_a_string_of_json_are_read_once() {
    let quote = |json: &str| Value::from(json).to_string();
    let edits = quote(r#"[{"oldText":"a","newText":"b"}]"#);
    let args = parse::<PreviewNoteArgs>(&format!(r#"{{"note_id":"n-1","edits":{edits}}}"#)).expect("edits").args;
    assert_eq!(args.edits[0].old_text.as_str(), "a");
    let both = format!(r#""weights":{},"extra":{}"#, quote(r#"{"a":1}"#), quote(r#"{"b":[2]}"#));
    let args = take(&both);
    assert_eq!((args.weights.expect("a map").get().len(), args.extra.expect("JSON").as_str()), (1, r#"{"b":[2]}"#));
    let twice = quote(&quote(r#"{"a":1}"#));
    assert!(parse::<PreviewNoteArgs>(&with(&format!(r#""weights":{twice}"#))).is_err());
}

#[test]
fn a_mistake_has_its_path() {
    let edit = r#"{"oldText":"a","newText":"b"}"#;
    for (member, mistake) in [
        (
            r#""outline":{"chapters":[{"sections":[{"marks":[{"line":"x"}]}]}]}"#,
            "`outline.chapters[0].sections[0].marks[0].line`: \"x\" is not an integer",
        ),
        (r#""outline":{}"#, "`outline.chapters` is required: a list of at most 2, each item an object"),
        (r#""outline":{"chapters":[],"pages":1}"#, "`outline.pages` is no member here; it takes `chapters`"),
        (r#""outline":{"chapters":[],"chapters":[]}"#, "`outline.chapters` is given more than once"),
        (r#""weights":{"a":2}"#, "`weights.a`: 2 is not a number from -0.5 to 1"),
        (r#""weights":{"a":1,"a":1}"#, "`weights.a` is given more than once"),
        (
            r#""weights":{"a":1,"b":1,"c":1,"d":1}"#,
            "`weights`: what was sent is not an object of at most 3 members, each a number from -0.5 to 1",
        ),
        (r#""footer":7"#, "`footer`: what was sent is not a text of at most 2000 characters"),
        (r#""extra":[]"#, "`extra`: what was sent is not a JSON object of at most 400 bytes"),
        (r#""since":"2026-12-31""#, "`since`: \"2026-12-31\" is not a time in RFC 3339 such as 2026-12-31T18:00:00Z"),
    ] {
        assert_eq!(refusal(&with(member)), mistake, "{member}");
    }
    for (edits, mistake) in [
        (
            format!(r#"[{edit},{{"oldText":"a","new_text":"b"}}]"#),
            "`edits[1].newText` is required: a text of at most 2000 characters; `edits[1].new_text` is no member here; it takes `oldText`, `newText`, `mode`, `note`",
        ),
        (format!(r#"[{edit},[]]"#), "`edits[1]`: what was sent is not an object"),
        (r#"{"0":{}}"#.to_owned(), "`edits`: what was sent is not a list of at most 50, each item an object"),
    ] {
        assert_eq!(refusal(&format!(r#"{{"note_id":"n-1","edits":{edits}}}"#)), mistake);
    }
}

#[test]
fn the_audit_has_the_length_and_the_digest_of_texts_and_parts() {
    let args =
        r#"{"note_id":"n-1","edits":[{"oldText":"hunter2","newText":"é"}],"footer":"é\n","weight":1,"extra":null}"#;
    let shown = parse::<PreviewNoteArgs>(args).expect("valid").shown.expect("another form");
    let digest = |text: &str| json!({"characters": text.chars().count(), "sha256": hex::encode(&Sha256::digest(text))});
    let expected = json!({
        "note_id": "n-1",
        "edits": digest(r#"[{"oldText":"hunter2","newText":"é"}]"#),
        "footer": digest("é\n"),
        "weight": 1,
        "extra": null,
    });
    assert_eq!(serde_json::to_value(&shown).expect("JSON"), expected);
    let refused = parse::<PreviewNoteArgs>(&with(r#""footer":["hunter2"]"#)).expect_err("no text");
    assert!(!format!("{refused:?}").contains("hunter2"), "{refused:?}");
}

#[test]
fn null_differs_from_absent_where_the_contract_says_so_also_in_a_stored_write() {
    for (members, icon, edits) in [
        ("", None, None),
        (r#","icon":null,"edits":null"#, Some(Nullable::Null), Some(Nullable::Null)),
        (r#","icon":"","edits":[]"#, Some(Nullable::Value(String::new())), Some(Nullable::Value(0))),
    ] {
        let sent =
            parse::<PatchNoteArgs>(&format!(r#"{{"note_id":"n-1","weights":null{members}}}"#)).expect("valid").args;
        let stored = serde_json::to_string(&sent).expect("JSON");
        let read = parse_stored::<PatchNoteArgs>(&stored).unwrap_or_else(|why| panic!("{stored}: {why}"));
        assert_eq!(read, sent, "{stored}");
        assert_eq!(read.icon.map(|icon| icon.map(|icon| icon.as_str().to_owned())), icon, "{stored}");
        assert_eq!(read.edits.map(|edits| edits.map(|edits| edits.len())), edits, "{stored}");
    }
    let why = parse_stored::<PatchNoteArgs>(r#"{"note_id":"n-1","weights":{"hunter2":"much"}}"#).expect_err("a text");
    assert!(why.as_str().contains("`weights[0]`") && !why.as_str().contains("hunter2"), "{why}");
}

#[derive(Debug, PartialEq)]
struct RenamedArgs(Option<Nullable<String>>);

impl Arguments for RenamedArgs {
    const FORMER: &'static [(&'static str, &'static str)] = &[("emoji", "icon")];
    const NULLABLE: &'static [&'static str] = &["icon"];

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        from.nullable("icon").map(Self)
    }
}

#[test]
fn null_of_a_stored_write_has_its_meaning_also_under_a_former_name() {
    for name in ["emoji", "icon"] {
        let read = |value: &str| parse_stored(&format!(r#"{{"{name}":{value}}}"#));
        assert_eq!(read("null"), Ok(RenamedArgs(Some(Nullable::Null))), "{name}");
        assert_eq!(read(r#""x""#), Ok(RenamedArgs(Some(Nullable::Value("x".to_owned())))), "{name}");
    }
}

#[test]
fn hostile_values_are_refused_within_the_bounds_of_a_refusal() {
    let deep = |open: &str, close: &str| open.repeat(100_000) + &close.repeat(100_000);
    let many = |item: &str, count| iter::repeat_n(item, count).collect::<Vec<_>>().join(",");
    let named = (0..100_000).map(|n| format!("\"n{n}\":1")).collect::<Vec<_>>().join(",");
    let levels = |levels| format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
    assert!(parse::<PreviewNoteArgs>(&with(&format!(r#""extra":{}"#, levels(16)))).is_ok());
    for member in [
        format!(r#""extra":{}"#, levels(17)),
        format!(r#""extra":{}"#, deep(r#"{"a":"#, "}")),
        format!(r#""extra":{{"a":{}}}"#, deep("[", "]")),
        format!(r#""extra":{{"a":"{}"}}"#, "a".repeat(1_000_000)),
        r#""extra":{"a":1,"\u0061":2}"#.to_owned(),
        r#""extra":{"a":1e400}"#.to_owned(),
        r#""extra":{"a":"\ud800"}"#.to_owned(),
        r#""extra":{"$serde_json::private::RawValue":"1"}"#.to_owned(),
        format!(r#""extra":{{"a":"b"}}{}"#, r#","extra":{}"#.repeat(1_000)),
        r#""weight":1e400"#.to_owned(),
        r#""weight":"0.5""#.to_owned(),
        r#""weight":NaN"#.to_owned(),
        format!(r#""weight":0.{}"#, "0".repeat(1_000_000)),
        format!(r#""weights":{{{named}}}"#),
        r#""weights":{"\ud800":1}"#.to_owned(),
        r#""footer":"\udc00""#.to_owned(),
        format!(r#""footer":"{}""#, "a".repeat(2_001)),
        format!(r#""footer":"{}""#, r"\u0061".repeat(1_000_000)),
        format!(r#""outline":{{"chapters":{}}}"#, deep("[", "]")),
        format!(r#""outline":{}"#, deep(r#"{"chapters":["#, "]}")),
        format!(r#""outline":{{"chapters":[],{named}}}"#),
        format!(r#""outline":{{"chapters":[{}]}}"#, many("{}", 100_000)),
        r#""since":"9999999-01-01T00:00:00Z""#.to_owned(),
        r#""since":"1969-12-31T23:59:59Z""#.to_owned(),
        r#""since":"2026-12-31T18:00:00+00:00[UTC]""#.to_owned(),
        r#""since":"2026-02-30T18:00:00Z""#.to_owned(),
    ] {
        let sent = with(&member);
        let start: String = sent.chars().take(80).collect();
        match parse::<PreviewNoteArgs>(&sent) {
            Ok(taken) => panic!("{start} is taken: {:?}", taken.args),
            Err(refused) => assert!(refused.what.as_str().len() < 8_000, "{start}: {}", refused.what.as_str().len()),
        }
    }
    let edits = |edit: &str, count| format!(r#"{{"note_id":"n-1","edits":[{}]}}"#, many(edit, count));
    let sound = r#"{"oldText":"a","newText":"b"}"#;
    assert!(parse::<PreviewNoteArgs>(&edits(sound, 50)).is_ok());
    let refused = refusal(&edits(sound, 51));
    assert_eq!(refused, "`edits`: what was sent is not a list of at most 50, each item an object");
    let refused = refusal(&edits(r#"{"a":1,"b":2}"#, 50));
    assert!(refused.contains("`edits[7].newText` is required") && refused.ends_with("and 168 more"), "{refused}");
}

#[test]
fn texts_maps_and_json_of_others_are_cleaned_and_what_is_written_out_is_counted() {
    let note = |labels: Option<[(&str, &str); 2]>, extra: &str, content: &str| Note {
        note_id: NoteId::new("n-1").expect("an id"),
        content: content.into(),
        labels: labels.map(|labels| {
            UntrustedMap::new(labels.map(|(name, label)| (name.to_owned(), label.into()))).expect("labels")
        }),
        extra: UntrustedJson::new(extra).expect("JSON"),
        weight: Weight::new(0.25).expect("a weight"),
        capabilities: NoteCapabilities { edit: true },
    };
    let plain = serde_json::to_value(note(None, r#"{"big":12345678901234567890}"#, "a\n")).expect("JSON");
    assert_eq!(
        plain,
        json!({
            "note_id": "n-1", "content": "a\n", "labels": null, "extra": {"big": 12_345_678_901_234_567_890_u64},
            "weight": 0.25, "capabilities": {"edit": true},
        })
    );
    let labels = [("a\u{202e}", "\u{200b}"), ("b", "c")];
    let hidden = note(Some(labels), r#"{"\u202ea": ["\u202e", "é"]}"#, "\u{1b}[31m");
    let hidden = serde_json::to_value(hidden).expect("JSON");
    assert_eq!(hidden["labels"], json!({"a⟨U+202E⟩": "⟨U+200B⟩", "b": "c"}));
    assert_eq!(
        (&hidden["extra"], &hidden["content"]),
        (&json!({"⟨U+202E⟩a": ["⟨U+202E⟩", "é"]}), &json!("⟨U+001B⟩[31m"))
    );
    assert_eq!(hidden["altered"], 5);

    let numbered = |count: usize| (0..count).map(|n| (n.to_string(), n));
    assert!(UntrustedMap::<usize, 4>::new(numbered(4)).is_ok() && UntrustedMap::<usize, 4>::new(numbered(5)).is_err());
    assert!(UntrustedMap::<u8, 4>::new([("\u{200b}".to_owned(), 1), ("⟨U+200B⟩".to_owned(), 2)]).is_err());
    assert!(["[]", "{", r#"{"a":"\u202e\u202e"}"#].iter().all(|json| UntrustedJson::<20>::new(json).is_err()));
}
