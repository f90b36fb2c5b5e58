//! A new file of tools in the contract: the compiler names the trait to implement, and the place.

#[path = "shop/shop.rs"]
mod shop;

use toolwarrant::contract::Handlers;
use shop::Shop;
use shop::contract::Contract;
use std::sync::Arc;

fn serve(_: impl Handlers) {}

fn main() {
    serve(Contract(Arc::new(Shop)));
}
