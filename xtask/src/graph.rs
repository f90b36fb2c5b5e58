//! `cargo xtask graph`: the crates and what each uses, with the rules that the architecture rests on.
//!
//! Only normal dependencies count: what a test uses is no part of what is built. A rule that is broken is an error.

use crate::modules;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Every crate, each after those that it may use.
const ORDER: [&str; 17] = [
    "toolwarrant-spec",
    "toolwarrant-codegen",
    "toolwarrant-macros",
    "toolwarrant-signing",
    "toolwarrant-client",
    "cloudphone-bridge",
    "toolwarrant-core",
    "toolwarrant-http",
    "toolwarrant-tasks",
    "toolwarrant-store",
    "toolwarrant-operator",
    "toolwarrant",
    "cloudphone",
    "adapter-suite",
    "print-shop",
    "armcloud-double",
    "xtask",
];

/// Libraries that decide what a crate is about, and the crates that use them.
const OWNERS: [(&str, &[&str]); 6] = [
    ("axum", &["toolwarrant-http", "armcloud-double"]),
    ("hyper", &["toolwarrant-http"]),
    ("rusqlite", &["toolwarrant-store"]),
    ("clap", &["toolwarrant-client", "toolwarrant-operator", "cloudphone", "print-shop", "armcloud-double", "xtask"]),
    ("rustls", &["toolwarrant-client", "toolwarrant-http"]),
    ("tiktoken-rs", &["xtask"]),
];

/// A crate of the workspace.
struct Crate {
    name: String,
    /// Where its sources are.
    folder: String,
    uses: Vec<String>,
}

/// Prints the graph, and fails where a rule is broken.
pub(crate) fn run(root: &Path) -> Result<()> {
    let crates = crates(root)?;
    let place = |name: &str| ORDER.iter().position(|known| *known == name);
    let mut broken = Vec::new();
    for Crate { name, folder, uses } in &crates {
        let inside: Vec<&str> = uses.iter().map(String::as_str).filter(|used| place(used).is_some()).collect();
        let owned: Vec<&str> = OWNERS
            .iter()
            .map(|(library, _)| *library)
            .filter(|library| uses.iter().any(|used| used == library))
            .collect();
        println!("{name:21} {:32} {:16} {}", folder, owned.join(" "), inside.join(" "));
        match place(name) {
            None => broken.push(format!("{name} has no place in the order of crates")),
            Some(own) => {
                let later = inside.iter().filter(|used| place(used).is_some_and(|other| other >= own));
                broken.extend(later.map(|used| format!("{name} uses {used}, which stands after it")));
            }
        }
        for (library, owners) in
            OWNERS.iter().filter(|(library, owners)| owned.contains(library) && !owners.contains(&name.as_str()))
        {
            broken.push(format!("{name} uses {library}, which is for {}", owners.join(", ")));
        }
        let circles = modules::circles(&root.join(folder))?;
        broken.extend(circles.iter().map(|circle| format!("{name}: modules use each other: {}", circle.join(", "))));
    }
    ensure!(broken.is_empty(), "the architecture does not hold:\n{}", broken.join("\n"));
    println!(
        "{} crates, each uses only those before it; no modules of a crate use each other in a circle",
        crates.len()
    );
    Ok(())
}

/// The crates of the workspace in the order of the architecture.
fn crates(root: &Path) -> Result<Vec<Crate>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline", "--locked"])
        .current_dir(root)
        .output()
        .context("cannot run cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let mut crates = Vec::new();
    for package in metadata["packages"].as_array().context("packages")? {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let dependencies = package["dependencies"].as_array().context("dependencies")?;
        let uses = dependencies.iter().filter(|used| used["kind"].is_null()).map(|used| text(&used["name"])).collect();
        let manifest = text(&package["manifest_path"]);
        let folder = Path::new(&manifest).parent().context("a manifest lies in a folder")?;
        let folder = folder.strip_prefix(root).unwrap_or(folder).display().to_string();
        crates.push(Crate { name: text(&package["name"]), folder, uses });
    }
    crates.sort_by_key(|known| ORDER.iter().position(|name| *name == known.name));
    Ok(crates)
}
