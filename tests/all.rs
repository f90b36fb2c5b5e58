//! Everything that the product promises, tried at its boundary. A test is data; `harness` serves it.

mod harness;
mod polls;
mod print_shop;

mod arguments;
mod bad_input;
mod bad_spec;
mod catalogue;
mod cli;
mod clients;
mod crash;
mod credentials;
mod doctor;

mod engine;
mod house;
mod limits;
mod monitor;
mod program;
mod tasks;
mod ui;
mod wire;
