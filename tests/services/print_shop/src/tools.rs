//! A method for each tool: one file for each file of `spec/tools/` whose tools have handlers, of the same name.
//!
//! A method checks no key, no permission, no argument and no flag: none of these can be wrong by the time it is called.

mod floor;
mod printers;
mod printing;
mod trays;
