//! `cargo xtask contract`: the commands of the contract's gate on the contract of the product.

use anyhow::Result;
use std::path::Path;
use toolwarrant_contract::{GateAnswer, GateCommand, GateContext, execute, today};

pub(crate) fn run(root: &Path, command: &GateCommand) -> Result<()> {
    let (folder, package) = (root.join(crate::r#gen::SPEC), root.join("server/cloudphone"));
    let context = GateContext { folder: &folder, package: &package, today: &today() };
    let GateAnswer { text, code } = execute(command, context);
    println!("{}", text.trim_end());
    if code != 0 {
        std::process::exit(code.into());
    }
    Ok(())
}
