//! Stored arguments of former contracts.

use toolwarrant_base::text::Secret;
use toolwarrant_core::args::{Arguments, Reader, parse, parse_stored};

#[derive(Debug)]
struct StoredPage {
    copies: i64,
    pin: Option<Secret<String>>,
}

impl Arguments for StoredPage {
    const FORMER: &'static [(&'static str, &'static str)] =
        &[("count", "copies"), ("number", "copies"), ("code", "pin")];

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        let (copies, pin) = (from.require("copies"), from.optional("pin"));
        Some(Self { copies: copies?, pin: pin? })
    }
}

#[test]
fn stored_arguments_are_read_by_each_former_name_and_those_of_clients_by_none() {
    for (json, is_present) in [
        (r#"{"copies":3,"pin":"p1"}"#, true),
        (r#"{"count":3,"pin":"p1"}"#, false),
        (r#"{"number":3,"code":"p1"}"#, false),
        (r#"{"number":3,"code":"p1","colour":null}"#, false),
    ] {
        let page = parse_stored::<StoredPage>(json).unwrap_or_else(|why| panic!("{json}: {}", why.as_str()));
        assert_eq!((page.copies, page.pin.as_ref().map(|pin| pin.expose().as_str())), (3, Some("p1")), "{json}");
        assert_eq!(parse::<StoredPage>(json).is_ok(), is_present, "{json}");
    }
}

#[test]
fn a_refusal_of_stored_arguments_names_each_mistake_and_shows_no_value() {
    for (json, expected) in [
        (r#"{"copies":"hunter2"}"#, "`copies`: what was sent is not an integer"),
        (r#"{"copies":1,"colour":"hunter2"}"#, "`colour` is no argument of this tool; it takes `copies`, `pin`"),
        (r#"{"copies":1,"count":2}"#, "`copies` is given more than once"),
        ("hunter2", "`copies` is required: an integer"),
    ] {
        let refused = parse_stored::<StoredPage>(json).expect_err(json);
        assert_eq!(refused.as_str(), expected, "{json}");
    }
}
