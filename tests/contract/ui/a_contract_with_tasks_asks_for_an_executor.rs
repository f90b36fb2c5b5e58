//! A service without an executor, although a tool makes tasks: the compiler says what to write.

mod contract {
    toolwarrant::contract!("served/spec");
}
#[path = "../served/src/files.rs"]
mod files;

use std::sync::Arc;
use toolwarrant::Service;

fn main() {
    let files = Arc::new(files::Files("shares".into()));
    let _ = Service::new(contract::Contract(files));
}
