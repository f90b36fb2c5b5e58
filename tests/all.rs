//! Everything that the product promises, tried at its boundary. A test is data; `harness` serves it.

mod harness;
mod polls;
mod shop;

mod adapters;
mod applications;
mod arguments;
mod audit;
mod authority;
mod backup;
mod bad_input;
mod bad_spec;
mod bridge;
mod call;
mod catalogue;
mod cli;
mod clients;
mod clocks;
mod config;
mod crash;
mod credentials;
mod descriptions;
mod devices;
mod differential;
mod doctor;
mod double;
#[cfg(target_os = "linux")]
mod edge;
mod engine;
mod flags;
mod folders;
#[cfg(target_os = "linux")]
mod full_disk;
mod hammer;
mod hostile;
mod house;
mod limits;
mod monitor;
mod openapi;
mod outcomes;
mod outputs;
mod outside;
mod platform;
mod platforms;
mod process;
mod program;
mod proxy_hosts;
mod reader;
mod refusals;
mod revisions;
mod signed;
mod signing;
mod tasks;
#[cfg(target_os = "linux")]
mod tls;
mod tools;
mod ui;
mod v1;
mod wire;
