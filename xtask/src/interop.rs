//! `cargo xtask interop`: official clients of the protocol, and its conformance suites, against the
//! program as users start it.
//!
//! A client is a script in `tests/wire/interop`; lock files in the same folder pin its packages. It
//! reads its calls, which come from the contract, as JSON, and writes lines of JSON: its name, each
//! check, and the reason if it cannot speak a revision. Each client runs with its own choice of
//! revision; the two official SDKs (with `--all`, each client) also run pinned to each revision
//! that the contract serves.

mod bench;
mod editor;
mod findings;
mod samples;

use crate::cargo::{cargo_of_tests, step};
use anyhow::{Context, Result, anyhow, ensure};
use bench::Bench;
use findings::Findings;
use samples::{JAVASCRIPT, PYTHON, Sample};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;
use toolwarrant_reader::load;

const PYTHONS: [&str; 2] = ["python-2", "python-1"];
/// The package changed its name with its second major version.
const TYPESCRIPTS: [&str; 2] = ["@modelcontextprotocol/client", "@modelcontextprotocol/sdk"];
const BRIDGES: [&str; 2] = ["mcp-remote", "cloudphone bridge"];
/// The next suite has scenarios for more revisions.
const SUITES: [&str; 2] = ["@modelcontextprotocol/conformance", "conformance-next"];
const LEFT_OUT: &str = "conformance.toml";
/// For every script that is not a suite, in addition to a call of each tool.
const WANTED: [&str; 5] = ["handshake", "tools/list", "invalid_argument", "tools/list of a reader", "wrong secret"];
/// Clients wait most of the time.
const AT_ONCE: usize = 4;

pub(crate) fn run(root: &Path, all: bool) -> Result<u64> {
    // The tests need the program, too, and have mostly built it.
    step(cargo_of_tests(root), &["test", "--workspace", "--locked", "--no-run"])?;
    let this = std::env::current_exe()?;
    let built = this.parent().context("this program must be in a folder")?;
    let scripts = root.join("tests/wire/interop");
    let contract = load(&root.join("spec")).map_err(|report| anyhow!("{report}"))?;
    let tools = contract.tools().map(|tool| {
        let examples: Vec<_> = tool.examples.iter().map(|example| &example.arguments).collect();
        json!({"name": tool.name, "task": tool.task().is_some(), "examples": examples})
    });
    let left_out: Value = toml::from_str(&fs::read_to_string(scripts.join(LEFT_OUT))?).context(LEFT_OUT)?;
    let program = built.join("cloudphone");
    let wanted: Vec<String> =
        WANTED.into_iter().chain(contract.tools().map(|tool| &*tool.name)).map(str::to_owned).collect();
    let plan = json!({
        "program": program,
        "versions": contract.service.served,
        "tools": tools.collect::<Vec<_>>(),
        "left_out": left_out["left_out"],
    });
    let bench = Bench {
        scripts,
        home: built.with_file_name("interop"),
        program,
        runtime: tokio::runtime::Runtime::new()?,
        plan,
    };
    let edited = editor::check(&bench, root)?;
    let mut revisions: Vec<&str> = contract.service.served.iter().map(AsRef::as_ref).collect();
    revisions.sort_unstable();
    let cells = try_all(&bench, &clients(&bench, root, &wanted)?, &revisions, all)?;
    let mut failures = if all { findings::never_left_out(&cells, &left_out["left_out"]) } else { Vec::new() };
    let passed = findings::show(&cells, &revisions, &mut failures);
    ensure!(failures.is_empty(), "the clients and the server do not agree; the table shows where");
    Ok((passed + edited) as u64)
}

enum Client {
    Script { interpreter: PathBuf, arguments: Vec<String>, folder: PathBuf, wanted: Vec<String>, is_official: bool },
    Sample { interpreter: PathBuf, sample: Sample },
}

fn clients(bench: &Bench, root: &Path, wanted: &[String]) -> Result<Vec<Client>> {
    let (mut clients, mut samples) = (Vec::new(), Vec::new());
    let without_key: Vec<_> = wanted.iter().filter(|check| *check != "wrong secret").cloned().collect();
    for major in PYTHONS {
        let folder = bench.install_python(major)?;
        let interpreter = folder.join("bin/python");
        let sample = Sample::read(root, &PYTHON, &folder, major.ends_with('1'))?;
        samples.push(Client::Sample { interpreter: interpreter.clone(), sample });
        let is_official = major == PYTHONS[0];
        for (words, wanted) in [(&["client.py"][..], wanted), (&["client.py", "stdio"], &without_key)] {
            let (interpreter, folder, wanted) = (interpreter.clone(), folder.clone(), wanted.to_vec());
            let arguments = words.iter().copied().map(str::to_owned).collect();
            clients.push(Client::Script { interpreter, arguments, folder, wanted, is_official });
        }
    }
    let (interpreter, folder) = bench.install_node()?;
    for package in TYPESCRIPTS {
        let sample = Sample::read(root, &JAVASCRIPT, &folder, package.ends_with("/sdk"))?;
        samples.push(Client::Sample { interpreter: interpreter.clone(), sample });
    }
    let mut script = |words: &[&str], wanted: &[String]| {
        let (interpreter, folder) = (interpreter.clone(), folder.clone());
        let arguments = words.iter().copied().map(str::to_owned).collect();
        let is_official = words == ["client.mjs", TYPESCRIPTS[0]];
        clients.push(Client::Script { interpreter, arguments, folder, wanted: wanted.to_vec(), is_official });
    };
    for package in TYPESCRIPTS {
        script(&["client.mjs", package], wanted);
    }
    for bridge in BRIDGES {
        script(&["client.mjs", TYPESCRIPTS[0], bridge], wanted);
    }
    for package in TYPESCRIPTS {
        script(&["client.mjs", package, "cloudphone stdio"], &without_key);
    }
    script(&["inspector.mjs"], wanted);
    for suite in SUITES {
        script(&["conformance.mjs", suite], &[]);
    }
    Ok(clients.into_iter().chain(samples).collect())
}

fn try_all(bench: &Bench, clients: &[Client], revisions: &[&str], all: bool) -> Result<Vec<Findings>> {
    let pinned: Vec<Option<&str>> = [None].into_iter().chain(revisions.iter().copied().map(Some)).collect();
    // It begins at the end, because samples take the longest.
    let cells = clients.iter().enumerate().rev().flat_map(|(row, client)| match client {
        Client::Script { is_official, .. } if all || *is_official => {
            pinned.iter().map(|pin| (row, client, *pin)).collect()
        }
        Client::Script { .. } | Client::Sample { .. } => vec![(row, client, None)],
    });
    let cells: Mutex<VecDeque<_>> = Mutex::new(cells.enumerate().collect());
    let next = || cells.lock().ok()?.pop_front();
    let work = || -> Result<Vec<Findings>> {
        let mut found = Vec::new();
        while let Some((number, (row, client, pin))) = next() {
            let begin = Instant::now();
            let mut findings = match client {
                Client::Script { interpreter, arguments, folder, wanted, is_official: _ } => {
                    let mut command = Command::new(interpreter);
                    let mut findings = bench.run(command.args(arguments).current_dir(folder), pin, number)?;
                    findings.complete(wanted);
                    findings
                }
                Client::Sample { interpreter, sample } => sample.try_out(interpreter, || bench.server(number))?,
            };
            (findings.row, findings.pin) = (row, pin.map(str::to_owned));
            findings.print(begin.elapsed());
            found.push(findings);
        }
        Ok(found)
    };
    let mut found = thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        let ends =
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|_| Err(anyhow!("a worker panicked"))));
        ends.collect::<Result<Vec<_>>>()
    })?
    .concat();
    found.sort_by(|one, other| (one.row, &one.pin).cmp(&(other.row, &other.pin)));
    Ok(found)
}
