//! The print shop at its boundary: as a started program, and in this process where a test needs a
//! stopped clock.

mod process;

mod client;
mod console;
mod folders;
mod grants;
mod help;
mod jobs;
mod operator;
mod replicas;
mod replicas_examined;
mod replicas_operated;
mod upstream;
