//! One compilation of everything that the tests need, with Clippy as the compiler of the
//! workspace's own crates.

use crate::cargo::cargo_of_tests;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

#[derive(Clone)]
pub(super) struct Executable {
    /// Package and target: `cloudphone all`.
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// The tests run in this folder.
    pub(super) folder: PathBuf,
}

/// A warning is a failure.
pub(super) fn run(root: &Path, targets: &[&str], lints: bool) -> Result<Vec<Executable>> {
    let arguments = ["test", "--workspace", "--locked", "--no-run", "--message-format=json"];
    let arguments = [&arguments, targets].concat();
    println!("> cargo {}{}", arguments.join(" "), if lints { ", with clippy as the compiler" } else { "" });
    let mut child = cargo_of_tests(root).args(arguments).stdout(Stdio::piped()).spawn().context("cannot run cargo")?;
    let (mut executables, mut findings) = (Vec::new(), 0);
    for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()) {
        let line = line?;
        // Programs of build scripts may print lines of their own.
        let Ok(said) = serde_json::from_str::<Value>(&line) else { continue };
        if let Some(text) = said["message"]["rendered"].as_str() {
            findings += 1;
            eprint!("{text}");
        }
        executables.extend(executable(&said));
    }
    ensure!(child.wait()?.success() && findings == 0, "{findings} findings of the compiler are above");
    executables.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(executables)
}

fn executable(said: &Value) -> Option<Executable> {
    let path = said["executable"].as_str()?;
    let target = &said["target"];
    let kind = target["kind"][0].as_str()?;
    // Benches and examples are only compiled: they have no tests.
    if said["profile"]["test"] != true || matches!(kind, "bench" | "example") {
        return None;
    }
    let folder = Path::new(said["manifest_path"].as_str()?).parent()?;
    // `path+file:///folder#name@0.1.0`, or without the name if the folder has it.
    let (source, named) = said["package_id"].as_str()?.split_once('#')?;
    let package = named.split_once('@').map_or_else(|| source.rsplit('/').next(), |(name, _)| Some(name))?;
    let name = match (kind, target["name"].as_str()?) {
        ("test", target) => format!("{package} {target}"),
        (kind, _) => format!("{package} {kind}"),
    };
    Some(Executable { name, path: path.into(), folder: folder.to_owned() })
}
