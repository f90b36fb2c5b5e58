//! A service without an executor, although a tool makes tasks: the compiler says what to write.

mod contract {
    toolwarrant::contract!("served/spec");
}
#[path = "../served/src/lamps.rs"]
mod lamps;

use std::sync::Arc;
use toolwarrant::Service;

fn main() {
    let lamps = Arc::new(lamps::Lamps::default());
    let _ = Service::new(contract::Contract(lamps));
}
