//! The contract declares the error "out of ink" for `open_panel`, but not for `get_printer`.

#[path = "shop/shop.rs"]
mod shop;

use shop::contract::{GetPrinterError, OpenPanelError};

fn main() {
    let _ = OpenPanelError::OutOfInk { what: "declared".into(), colour: "cyan".into() };
    let _ = GetPrinterError::OutOfInk { what: "not declared".into(), colour: "cyan".into() };
}
