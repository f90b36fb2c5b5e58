//! `cargo xtask graph`: the crates and their dependencies, with the rules of the architecture.
//!
//! Dependencies of tests are not part of the build. They count if they name a version, because a
//! registry must have that first; a path alone is enough for tests.

use crate::cargo::must;
use crate::modules;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use toml::Table;

/// The crates that may use a library which defines their subject.
const OWNERS: [(&str, &[&str]); 7] = [
    ("axum", &["toolwarrant-http", "armcloud-double"]),
    ("hyper", &["toolwarrant-http", "armcloud-double"]),
    ("rusqlite", &["toolwarrant-sqlite"]),
    ("tokio-postgres", &["toolwarrant-postgres", "kit"]),
    (
        "clap",
        &[
            "toolwarrant-client",
            "toolwarrant-contract",
            "toolwarrant-operator",
            "cloudphone",
            "print-shop",
            "armcloud-double",
            "xtask",
        ],
    ),
    ("rustls", &["toolwarrant-outbound", "toolwarrant-http", "toolwarrant-postgres"]),
    ("tiktoken-rs", &["xtask"]),
];

const DEPLOYED: &str = "cloudphone";

/// The deployed program contains nothing of the compiler of contracts.
const COMPILER: [&str; 4] = ["toolwarrant-reader", "toolwarrant-gate", "toolwarrant-codegen", "toolwarrant-contract"];

struct Crate {
    name: String,
    /// Programs do not contain what a macro uses.
    is_macro: bool,
    folder: String,
    uses: Vec<String>,
    /// Those with a version.
    tests_with: Vec<String>,
}

pub(crate) fn run(root: &Path) -> Result<()> {
    let crates = crates(root)?;
    let place = |name: &str| crates.iter().position(|known| known.name == name);
    let mut broken = Vec::new();
    for (own, Crate { name, is_macro: _, folder, uses, tests_with }) in crates.iter().enumerate() {
        let inside: Vec<&str> = uses.iter().map(String::as_str).filter(|used| place(used).is_some()).collect();
        let owned: Vec<&str> = OWNERS
            .iter()
            .map(|(library, _)| *library)
            .filter(|library| uses.iter().any(|used| used == library))
            .collect();
        println!("{name:21} {:32} {:16} {}", folder, owned.join(" "), inside.join(" "));
        let later = inside
            .iter()
            .copied()
            .chain(tests_with.iter().map(String::as_str))
            .filter(|used| place(used).is_some_and(|other| other >= own));
        broken.extend(later.map(|used| format!("{name} uses {used}, which comes after it")));
        for (library, owners) in
            OWNERS.iter().filter(|(library, owners)| owned.contains(library) && !owners.contains(&name.as_str()))
        {
            broken.push(format!("{name} uses {library}, which is for {}", owners.join(", ")));
        }
        let circles = modules::circles(&root.join(folder))?;
        broken.extend(circles.iter().map(|circle| format!("{name}: modules use each other: {}", circle.join(", "))));
    }
    let contents = contents(&crates, DEPLOYED);
    let compiler = COMPILER.into_iter().filter(|part| contents.contains(part));
    broken.extend(compiler.map(|part| format!("{DEPLOYED} contains {part}, which is a part of the compiler")));
    ensure!(broken.is_empty(), "rules of the architecture are broken:\n{}", broken.join("\n"));
    println!(
        "{} crates, each uses only those before it; no modules of a crate use each other in a circle",
        crates.len()
    );
    Ok(())
}

fn contents<'c>(crates: &'c [Crate], program: &'c str) -> BTreeSet<&'c str> {
    let (mut found, mut open) = (BTreeSet::new(), vec![program]);
    while let Some(name) = open.pop() {
        let known = crates.iter().find(|known| known.name == name && !known.is_macro);
        if let (Some(Crate { uses, .. }), true) = (known, found.insert(name)) {
            open.extend(uses.iter().map(String::as_str));
        }
    }
    found
}

/// Keeps the order of the workspace's members, that of the architecture.
fn crates(root: &Path) -> Result<Vec<Crate>> {
    let arguments = ["metadata", "--format-version", "1", "--no-deps", "--offline", "--locked"];
    let metadata = must(Command::new(env!("CARGO")).args(arguments).current_dir(root))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let manifest: Table = fs::read_to_string(root.join("Cargo.toml"))?.parse()?;
    let members = manifest["workspace"]["members"].as_array().context("members")?;
    let packages = metadata["packages"].as_array().context("packages")?;
    ensure!(packages.len() == members.len(), "the members in Cargo.toml do not include all crates of the workspace");
    let read = |folder: &str| {
        let manifest = root.join(folder).join("Cargo.toml");
        let package =
            packages.iter().find(|package| package["manifest_path"].as_str().map(Path::new) == Some(&manifest));
        let package = package.with_context(|| format!("{folder} is not a crate"))?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let dependencies = package["dependencies"].as_array().context("dependencies")?;
        let named = |is_wanted: fn(&Value) -> bool| {
            dependencies.iter().filter(|used| is_wanted(used)).map(|used| text(&used["name"])).collect()
        };
        let uses = named(|used| used["kind"].is_null());
        let tests_with = named(|used| used["kind"] == "dev" && used["req"] != "*");
        let is_macro = package["targets"].to_string().contains("\"proc-macro\"");
        Ok(Crate { name: text(&package["name"]), is_macro, folder: folder.to_owned(), uses, tests_with })
    };
    members.iter().filter_map(toml::Value::as_str).map(read).collect()
}
