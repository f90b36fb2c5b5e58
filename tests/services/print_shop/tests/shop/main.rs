//! The print shop at its boundary: the program as it is started and called, and in this process where time must stand still.

mod process;

mod client;
mod folders;
mod grants;
mod help;
mod operator;
mod outcomes;
mod stopped_clock;
mod supplies;
