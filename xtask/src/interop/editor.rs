//! The contracts of this repository in an editor: Tombi must have no finding in any file, must find
//! mistakes at their places, and must complete keys and names. The script works on copies.

use super::bench::Bench;
use crate::python::must;
use anyhow::{Context, Result, anyhow};
use std::fs;
use std::path::Path;
use std::process::Command;
use toolwarrant_reader::{Mode, generate, load, replace};

/// The script spoils the first.
const SPECS: [&str; 4] =
    ["spec", "tests/services/print_shop/spec", "tests/services/files/spec", "tests/contract/forms"];

pub(super) fn check(bench: &Bench, root: &Path) -> Result<usize> {
    let (python, home) = (bench.install_python("tombi")?, bench.home.join("editor"));
    let _ = fs::remove_dir_all(&home);
    for (number, from) in SPECS.iter().enumerate() {
        let (from, to) = (root.join(from), home.join(number.to_string()).join("spec"));
        let contract = load(&from).map_err(|report| anyhow!("{report}"))?;
        for file in &contract.files {
            let (inside, text) = (file.strip_prefix(&from)?, fs::read_to_string(file)?);
            replace(&to.join(inside), &with_schema(inside, &text))?;
        }
        generate(&to, Mode::Write).with_context(|| from.display().to_string())?;
    }
    let mut script = Command::new(python.join("bin/python"));
    script.arg(python.join("editor.py")).arg(python.join("bin/tombi")).current_dir(&home);
    let said = must(&mut script)?;
    said.lines().for_each(|line| println!("editor: {line}"));
    Ok(said.lines().count())
}

fn with_schema(inside: &Path, text: &str) -> String {
    let (folder, name) = match inside.parent().and_then(Path::to_str) {
        Some("tools") => ("../", "tools"),
        _ => ("", inside.file_stem().and_then(|name| name.to_str()).unwrap_or_default()),
    };
    match text.starts_with("#:schema ") {
        true => text.to_owned(),
        false => format!("#:schema {folder}generated/editor/{name}.schema.json\n{text}"),
    }
}
