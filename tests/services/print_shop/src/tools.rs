//! A method for each tool: one file per file of `spec/tools/` whose tools have handlers, with the
//! same name.
//!
//! A method does not check the key, permissions, arguments or flags: the framework has checked them
//! before the call.

mod floor;
mod jobs;
mod printers;
mod printing;
mod trays;
