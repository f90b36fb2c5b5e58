//! An adapter without a wildcard arm does not compile until it handles each task tool and probe.

#[path = "shop/shop.rs"]
mod shop;

use shop::contract::{Command, Probe};

fn send(command: Command) {
    match command {}
}

fn read(probe: Probe) {
    match probe {}
}

fn main() {}
