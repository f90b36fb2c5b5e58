//! An adapter that matches without a wildcard does not compile until a new task tool or probe has code.

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
