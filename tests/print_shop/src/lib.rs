//! A print shop as a service: the worked example of a service of one's own. README.md starts it.
//!
//! It is read in this order: the contract in `spec/`, the [`machines`] which are the world outside, the [`Shop`] with a method
//! for each tool, the executor that carries writes out and judges what came of them, and [`program`].

mod executor;
mod inventory;
pub mod machines;
mod shop;
mod tools;

pub mod contract {
    //! What the contract in `spec/` says, as Rust.
    toolwarrant::contract!("spec");
}

pub use shop::Shop;

use contract::Contract;
use machines::Machines;
use serde_json::json;
use std::sync::Arc;
use toolwarrant::{Program, Service, Setup};

/// The program: what it is called, and what its first start shows.
#[must_use]
pub fn program() -> Program {
    Program::new("print-shop", env!("CARGO_PKG_VERSION"), "Serves printers and their trays to AI agents.")
        .usage(machines::USAGE)
        .demo("demo", &["print", "service"])
        .try_first("print_page", json!({"printer_id": "p-1", "mode": "draft"}))
        .hint("Then try the other printers; `print-shop --help` says what each does.\n\n")
}

/// The service: who answers calls, who carries writes out, and who lists what there is.
#[must_use]
pub fn service<F>(setup: Setup<'_, F>) -> Service<Contract<Shop>> {
    let shop = Arc::new(Shop::new(Machines::default(), setup.clock));
    let serves = format!("{} printers and {} trays", machines::PRINTERS.len(), machines::TRAYS.len());
    Service::new(Contract(shop.clone())).executor(shop.clone()).inventory(shop).serves(serves)
}
