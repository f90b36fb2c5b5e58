//! A new file of tools in the contract: the compiler says which trait to implement, and where.

#[path = "shop/shop.rs"]
mod shop;

use toolwarrant_core::pipeline::Handlers;
use shop::Shop;
use shop::contract::Contract;

fn serve(_: impl Handlers) {}

fn main() {
    serve(Contract(Shop));
}
