//! Connects clients that cannot set headers with a server of cloud phones. It has no database and
//! no server, so it is small and runs where desktop clients run.

use std::process::ExitCode;
use toolwarrant_client::{ClientNames, bridge_program};

fn main() -> ExitCode {
    bridge_program(&ClientNames {
        program: "cloudphone-bridge".to_owned(),
        bridge: "cloudphone-bridge".to_owned(),
        operator: "cloudphone".to_owned(),
        version: env!("CARGO_PKG_VERSION"),
        environment: "CLOUDPHONE_".to_owned(),
        read_permission: Some("device_read".to_owned()),
        resources: vec!["device".to_owned()],
    })
}
