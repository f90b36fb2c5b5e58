//! A print shop as a service: the worked example for authors of a service. README.md shows how to
//! start it.
//!
//! Read it in this order:
//!
//! * the contract in `spec/`
//! * the [`machines`], which are the outside world
//! * the [`Shop`] with a method for each tool
//! * the executor, which carries writes out and reads their evidence
//! * [`program`]

pub mod contract;
mod executor;
mod inventory;
pub mod machines;
mod shop;
mod tools;

pub use shop::Shop;

use clap::Args;
use contract::Contract;
use machines::Machines;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use toolwarrant::operator::Names;
use toolwarrant::{Program, Service};

/// The flags of the shop.
#[derive(Clone, Debug, Default, Args)]
pub struct ShopFlags {
    /// Folder in which the simulated machines count their pages; without it they forget them at a
    /// stop
    #[arg(long, value_name = "DIR")]
    pub machines: Option<PathBuf>,
}

const ALONE: &str = "its machines exist in this process alone; --machines puts them in a folder that all replicas use";

#[must_use]
pub fn program() -> Program<ShopFlags> {
    Program::with_names(
        Names::of("print-shop", env!("CARGO_PKG_VERSION")),
        "Serves printers and their trays to AI agents.",
    )
    .alone(|flags: &ShopFlags, _| flags.machines.is_none().then_some(ALONE))
    .usage(machines::USAGE)
    .demo("demo", &["print", "service"])
    .try_first("print_page", json!({"printer_id": "p-1", "mode": "draft"}))
}

const HINT: &str = "Then try the other printers; `print-shop --help` lists their habits.\n\n";

#[must_use]
pub fn service(machines: Machines) -> Service<Contract<Shop>> {
    let shop = Arc::new(Shop::new(machines));
    let serves = format!("{} printers and {} trays", machines::PRINTERS.len(), machines::TRAYS.len());
    Service::with_executor(Contract(shop.clone()), shop.clone()).inventory(shop).serves(serves).hint(HINT)
}
