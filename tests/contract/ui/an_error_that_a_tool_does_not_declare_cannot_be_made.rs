//! The contract lets `open_panel` run out of ink, and `get_printer` not.

#[path = "shop/shop.rs"]
mod shop;

use shop::contract::{GetPrinterError, OpenPanelError};

fn main() {
    let _ = OpenPanelError::OutOfInk { what: "declared".into(), colour: "cyan".into() };
    let _ = GetPrinterError::OutOfInk { what: "not declared".into(), colour: "cyan".into() };
}
