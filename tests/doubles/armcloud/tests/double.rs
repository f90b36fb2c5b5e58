//! The double in use: started as a program, called over HTTP with signatures, controlled by
//! switches, checked by its journal.

#[path = "double/adb.rs"]
mod adb;
#[path = "double/answers.rs"]
mod answers;
#[path = "double/control.rs"]
mod control;
#[path = "double/harness.rs"]
mod harness;
#[path = "double/operations.rs"]
mod operations;
#[path = "double/phones.rs"]
mod phones;
#[path = "double/proxies.rs"]
mod proxies;
#[path = "double/switches.rs"]
mod switches;
