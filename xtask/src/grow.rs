//! `cargo xtask grow`: the costs of a contract by its number of tools.
//!
//! It copies the product's tools under other names until there are enough, and builds a package
//! that has only the contract. All times are CPU times of development builds, because a busy
//! machine changes them least.

use crate::python::must;
use anyhow::{Context, Result, anyhow, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use toolwarrant_codegen::code;
use toolwarrant_contract::{GateCommand, GateContext, execute, expand};
use toolwarrant_reader::{ContractRecord, Mode, generate, load, replace};

/// The path of the framework in the expansion.
const RUNTIME: &str = "::toolwarrant::runtime";

/// The costs of a contract, each with its unit.
type Costs = Vec<(&'static str, String)>;

/// Prints a column of costs for each number of tools.
pub(crate) fn run(root: &Path, numbers: &[usize]) -> Result<()> {
    let this = std::env::current_exe()?;
    let target = this.parent().and_then(Path::parent).context("this program must be in a target folder")?;
    let mut columns: Vec<Costs> = Vec::new();
    for tools in numbers {
        let home = target.join("grow").join(tools.to_string());
        write_package(root, &home, *tools)?;
        let mut costs = vec![("tools", tools.to_string())];
        costs.extend(costs_of_reading(&home.join("spec"))?);
        costs.extend(costs_of_building(&home, target)?);
        columns.push(costs);
    }
    for (row, (name, _)) in columns.first().into_iter().flatten().enumerate() {
        let cells = columns.iter().map(|costs| format!("{:>12}", costs[row].1));
        println!("{name:44}{}", cells.collect::<String>());
    }
    Ok(())
}

/// Writes a package with a contract of that many tools.
fn write_package(root: &Path, home: &Path, wanted: usize) -> Result<()> {
    let (from, spec) = (root.join("spec"), home.join("spec"));
    let contract = load(&from).map_err(|report| anyhow!("{report}"))?;
    let least = contract.tools().count();
    ensure!(wanted >= least, "the product has {least} tools, and this makes copies of them");
    let _ = fs::remove_dir_all(home);
    let mut tools = BTreeMap::new();
    let (mut names, mut count) = (Vec::new(), 0);
    for copy in 0.. {
        for domain in contract.domains.iter().map(|domain| &domain.name) {
            let text = fs::read_to_string(from.join(format!("tools/{domain}.toml")))?;
            let stanzas =
                text.split("\n[[tool]]\n").skip(1).filter(|stanza| copy == 0 || !stanza.contains("read_task"));
            let stanzas: Vec<_> = stanzas.take(wanted - count).map(|stanza| rename(stanza, copy)).collect();
            if !stanzas.is_empty() {
                count += stanzas.len();
                let name = if copy == 0 { domain.clone() } else { format!("{domain}_{copy}") };
                tools.insert(format!("spec/tools/{name}.toml"), stanzas.concat());
                names.push(format!("\"{name}\""));
            }
        }
        if count == wanted {
            break;
        }
    }
    let service = fs::read_to_string(from.join("service.toml"))?;
    let (before, rest) = service.split_once("\ntools = [").context("service.toml lists its tools")?;
    let (_, after) = rest.split_once(']').context("service.toml lists its tools")?;
    let readers = "[readers]\nlist = 99999999\nlist_with_outputs = 99999999\n";
    let path = root.join("server/toolwarrant/service");
    let manifest = format!(
        "[package]\nname = \"grow\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\ntoolwarrant = {{ path = {path:?} }}\n"
    );
    for (path, text) in [
        ("Cargo.toml", manifest),
        ("Cargo.lock", fs::read_to_string(root.join("Cargo.lock"))?),
        (
            "src/lib.rs",
            "//! A contract.\n/// The contract.\npub mod contract {\n    toolwarrant::contract!(\"spec\");\n}\n".into(),
        ),
        ("spec/service.toml", format!("{before}\ntools = [{}]{after}\n{readers}", names.join(", "))),
    ] {
        replace(&home.join(path), &text)?;
    }
    for (path, text) in tools {
        replace(&home.join(path), &text)?;
    }
    for name in ["types.toml", "errors.toml", "reserved.toml"] {
        fs::copy(from.join(name), spec.join(name)).context(name)?;
    }
    Ok(())
}

/// Gives a copy of a tool its own name and path.
fn rename(stanza: &str, copy: usize) -> String {
    let lines = stanza.lines().map(|line| match (copy, line.strip_prefix("name = \"")) {
        (1.., Some(name)) => format!("name = \"{}_{copy}\"\n", name.trim_end_matches('"')),
        (1.., None) if line.starts_with("http = ") => format!("{}\n", line.replace("/v1/", &format!("/v1/{copy}/"))),
        _ => format!("{line}\n"),
    });
    format!("[[tool]]\n{}", lines.collect::<String>())
}

/// Measures what this process does with a contract.
fn costs_of_reading(spec: &Path) -> Result<Costs> {
    let load = || load(spec).map_err(|report| anyhow!("{report}"));
    let (contract, runtime) = (load()?, syn::parse_str(RUNTIME)?);
    let lines = expand(&contract).lines().count();
    let loading = fastest(load)?;
    let expanding = fastest(|| Ok(code(&contract, &runtime)))?;
    generate(spec, Mode::Write)?;
    let generating = fastest(|| Ok(generate(spec, Mode::Check)?))?;
    let gate = |command| execute(&command, GateContext { folder: spec, package: spec, today: "2026-01-01" });
    let released = gate(GateCommand::Release { version: contract.service.version.clone() });
    ensure!(released.code == 0, "{}", released.text);
    let edited = spec.join("tools/devices.toml");
    let text = fs::read_to_string(&edited)?;
    replace(&edited, &text.replacen("\"Lists ", "\"Shows ", 1))?;
    let checking = fastest(|| Ok(gate(GateCommand::check())))?;
    replace(&edited, &text)?;
    Ok(vec![
        ("lines of the expansion", lines.to_string()),
        ("facts of the record", ContractRecord::of(&contract).facts.len().to_string()),
        ("contract check after one changed word, ms of CPU", checking),
        ("load of the contract, ms of CPU", loading),
        ("expansion after the load, ms of CPU", expanding),
        ("gen --check, ms of CPU", generating),
        ("most memory of this process so far, MB", peak_memory()?),
    ])
}

/// Measures what cargo does with the package.
fn costs_of_building(home: &Path, target: &Path) -> Result<Costs> {
    let cargo = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.args(arguments).arg("--offline").current_dir(home).env("CARGO_TARGET_DIR", target);
        must(&mut command).map(drop)
    };
    let check = || -> Result<String> {
        let before = cpu_of_children()?;
        cargo(&["check", "--quiet"])?;
        Ok((cpu_of_children()? - before).to_string())
    };
    check().context("the package must compile")?;
    cargo(&["clean", "--quiet", "--package", "grow"])?;
    let clean = check()?;
    let file = home.join("spec/tools/devices.toml");
    let text = fs::read_to_string(&file)?;
    replace(&file, &text.replacen("\"Lists ", "\"Shows ", 1))?;
    let changed = check()?;
    replace(&file, &text)?;
    Ok(vec![
        ("cargo check of the contract alone, ms of CPU", clean),
        ("the same after one changed word, ms of CPU", changed),
    ])
}

/// Runs something five times. Returns the shortest CPU time in milliseconds.
fn fastest<T>(mut run: impl FnMut() -> Result<T>) -> Result<String> {
    let mut times = Vec::new();
    for _ in 0..5 {
        let begin = cpu_of_thread()?;
        run()?;
        times.push(cpu_of_thread()? - begin);
    }
    Ok((times.into_iter().min().unwrap_or_default() / 1_000_000).to_string())
}

/// Returns the CPU time of this thread in nanoseconds.
fn cpu_of_thread() -> Result<u64> {
    let times = fs::read_to_string("/proc/thread-self/schedstat").context("Linux is needed")?;
    times.split(' ').next().unwrap_or_default().parse().context("/proc/thread-self/schedstat")
}

/// Returns the CPU time of all ended children in milliseconds. A tick of this file is 10 ms.
fn cpu_of_children() -> Result<u64> {
    let stat = fs::read_to_string("/proc/self/stat").context("Linux is needed")?;
    let (_, fields) = stat.rsplit_once(") ").context("/proc/self/stat has a name")?;
    Ok(fields.split(' ').skip(13).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() * 10)
}

/// Returns the greatest size of this process in megabytes.
fn peak_memory() -> Result<String> {
    let status = fs::read_to_string("/proc/self/status").context("Linux is needed")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().context("VmHWM")?;
    Ok((kilobytes / 1024).to_string())
}
