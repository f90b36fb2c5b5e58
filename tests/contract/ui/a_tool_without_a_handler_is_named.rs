//! A new tool in the contract: the compiler names the method that is missing.

#[path = "shop/shop.rs"]
mod shop;

use shop::Shop;
use shop::contract::PrintersTools;

impl PrintersTools for Shop {}

fn main() {}
