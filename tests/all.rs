//! Everything that the product promises, tried at its boundary. A test is data; `harness` serves it.

mod harness;
mod polls;
mod shop;

mod arguments;
mod bad_input;
mod bad_spec;
mod catalogue;
mod cli;
mod clients;
mod crash;
mod credentials;
mod descriptions;
mod devices;
mod doctor;
mod engine;
mod folders;
#[cfg(target_os = "linux")]
mod full_disk;
mod hostile;
mod house;
mod limits;
mod monitor;
mod outcomes;
mod outputs;
mod outside;
mod platform;
mod program;
mod reader;
mod refusals;
mod revisions;
mod tasks;
mod tools;
mod ui;
mod wire;
