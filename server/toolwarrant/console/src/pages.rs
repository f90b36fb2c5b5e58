//! The pages. Each asks commands, and puts the answers into a template.

mod fleet;
mod overview;
mod shell;
mod single;
mod task;

pub(crate) use shell::{Main, Shell, SignIn, tag};
