//! A vendor's text cannot enter a message, a flag's reason or another of the service's own texts.

#[path = "shop/shop.rs"]
mod shop;

use shop::contract::OpenPanelError;
use toolwarrant::handler::Flag;
use toolwarrant::text::{Untrusted, words};

fn message(raw: String, clean: Untrusted) -> [OpenPanelError; 2] {
    [
        OpenPanelError::OutOfInk { what: raw.into(), colour: "cyan".into() },
        OpenPanelError::OutOfInk { what: words!["the printer says ", clean], colour: "cyan".into() },
    ]
}

fn field(clean: Untrusted) -> OpenPanelError {
    OpenPanelError::OutOfInk { what: "no ink".into(), colour: clean.into() }
}

fn flag(raw: String, clean: Untrusted) -> [Flag; 2] {
    [Flag::Refused(raw), Flag::Refused(clean)]
}

fn formatted(clean: Untrusted) -> String {
    format!("the printer says {clean}")
}

fn main() {}
