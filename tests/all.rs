//! Tests of the product's promises at its boundary. A test is data; `harness` serves it.
//!
//! `cargo test --package cloudphone --test all -- TEXT` runs the tests that have the text in their
//! path. With `INSTA_UPDATE=always`, it also accepts their snapshots: read what that changes.

#![expect(clippy::disallowed_methods, reason = "tests read what they wrote")]

mod drills;
mod harness;
mod house;

/// The promises about every tool, which read the contract.
mod contract {
    pub(crate) mod arguments;
    pub(crate) mod catalogue;
    pub(crate) mod descriptions;
    pub(crate) mod framework_types;
    pub(crate) mod openapi;
    pub(crate) mod outputs;
    pub(crate) mod reader;
    pub(crate) mod record;
    pub(crate) mod ui;
}

/// Requests and answers at `/mcp` and under `/v1`, and the clients there.
mod wire {
    pub(crate) mod authority;
    pub(crate) mod bad_input;
    pub(crate) mod bridge;
    pub(crate) mod call;
    pub(crate) mod clients;
    pub(crate) mod contract;
    pub(crate) mod credentials;
    #[cfg(target_os = "linux")]
    pub(crate) mod edge;
    pub(crate) mod follow;
    pub(crate) mod hostile;
    pub(crate) mod limits;
    mod malformed;
    pub(crate) mod messages;
    pub(crate) mod nested;
    pub(crate) mod polls;
    pub(crate) mod refusals;
    pub(crate) mod revisions;
    pub(crate) mod signing;
    #[cfg(target_os = "linux")]
    pub(crate) mod tls;
    pub(crate) mod v1;
    pub(crate) mod verify;
}

/// Commands, the data folder and the process. A command that only answers is a line in `cli`.
mod operate {
    pub(crate) mod acts;
    pub(crate) mod applications;
    pub(crate) mod audit;
    pub(crate) mod backup;
    pub(crate) mod cli;
    pub(crate) mod clocks;
    pub(crate) mod config;
    pub(crate) mod doctor;
    pub(crate) mod files;
    pub(crate) mod folders;
    #[cfg(target_os = "linux")]
    pub(crate) mod full_disk;
    pub(crate) mod life;
    #[cfg(target_os = "linux")]
    pub(crate) mod manager;
    pub(crate) mod metrics;
    pub(crate) mod monitor;
    pub(crate) mod owners;
    pub(crate) mod process;
    pub(crate) mod program;
    pub(crate) mod readme;
    pub(crate) mod replicas;
}

/// The meaning of each tool for phones.
mod phones {
    pub(crate) mod devices;
    pub(crate) mod outcomes;
    pub(crate) mod screen;
    pub(crate) mod tasks;
    pub(crate) mod tools;
}

/// The pages of the console.
mod console {
    mod acts;
    mod browser;
    mod door;
    mod pages;
    mod users;
}

/// The adapters, and the configuration of platforms.
mod platforms {
    pub(crate) mod adapters;
    pub(crate) mod configured;
    pub(crate) mod one_phone;
}

/// Services of other authors.
mod services {
    pub(crate) mod files;
    pub(crate) mod notes;
    pub(crate) mod outside;
    pub(crate) mod upgrade;
}
