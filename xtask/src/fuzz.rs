//! `cargo xtask fuzz`: schemathesis against the program, with signed requests from the OpenAPI
//! document.
//!
//! `tests/wire/interop/schemathesis_v1.py` drives it, with packages pinned in a lock file next to
//! it. It writes a line of JSON for each operation and each kind of failure.

use crate::cargo::{cargo, step};
use crate::python::python;
use anyhow::{Context, Result, ensure};
use driver::{Instance, KeyPair, Start};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use toolwarrant_reader::load;

const SCRIPT: &str = "schemathesis_v1.py";
const LOCK: &str = "schemathesis.txt";

const COLUMNS: [(&str, &[&str]); 4] = [
    ("5xx", &["ServerError"]),
    ("undocumented", &["UndefinedStatusCode"]),
    (
        "violations",
        &[
            "JsonSchemaError",
            "MalformedJson",
            "MalformedMediaType",
            "MissingContentType",
            "MissingHeaders",
            "UndefinedContentType",
        ],
    ),
    ("other", &[]),
];

/// The extent of a run.
#[derive(clap::Args)]
pub(crate) struct Cases {
    /// Minimum number of requests
    #[arg(long, default_value_t = 20_000)]
    cases: u64,
    /// Seed of the requests
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(root: &Path, Cases { cases, seed }: Cases) -> Result<()> {
    let this = std::env::current_exe()?;
    let target = this.parent().and_then(Path::parent).context("this program must be in a target folder")?;
    step(cargo(root), &["build", "--locked", "--package", "cloudphone", "--bin", "cloudphone"])?;
    let program = target.join("debug").join("cloudphone");
    let home = target.join("fuzz");
    let python = python(&root.join("tests/wire/interop").join(LOCK), &home.join("python"))?.join("python");
    let (runtime, server) = (tokio::runtime::Runtime::new()?, home.join("server"));
    let _ = fs::remove_dir_all(&server);
    fs::create_dir_all(&server).with_context(|| format!("cannot create {}", server.display()))?;
    let (running, key) = runtime.block_on(async {
        let running = Start::new(&program, &server).ready().await?;
        let key = key(&running, "fuzz").await?;
        anyhow::Ok((running, key))
    })?;
    let contract = load(&root.join("spec")).map_err(|report| anyhow::anyhow!("{report}"))?;
    let judges = |code: &str| contract.role("invalid_argument").is_some_and(|error| error.code == code);
    let judging = contract.tools().filter(|tool| tool.own_errors.iter().any(|error| judges(&error.code)));
    let plan = json!({
        "url": format!("http://{}", running.address),
        "key": {"id": key.id, "secret": key.secret},
        "cases": cases,
        "seed": seed,
        "judging": judging.map(|tool| &tool.name).collect::<Vec<_>>(),
    });
    println!("\n> cargo xtask fuzz: {cases} cases, seed {seed}");
    let mut driver = Command::new(python);
    driver.arg(root.join("tests/wire/interop").join(SCRIPT)).current_dir(&server);
    let mut driver = driver.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot run Python")?;
    serde_json::to_writer(driver.stdin.take().context("the driver has an input")?, &plan)?;
    let mut said: Vec<Value> = Vec::new();
    for line in driver.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()) {
        let line = line?;
        said.push(serde_json::from_str(&line).with_context(|| format!("not JSON: {line}"))?);
    }
    ensure!(driver.wait()?.success(), "the driver failed; the reason is above and in {}", server.display());
    let failures = show(&said);
    ensure!(
        failures == 0,
        "answers do not conform to the document: examples are above, all of them in {}",
        server.display()
    );
    Ok(())
}

async fn key(running: &Instance, name: &str) -> Result<KeyPair> {
    let operator = &running.operator;
    let create = ["app", "create", name, "--permission", "device", "--permission", "stream"];
    operator.json(create.into_iter().chain(["--requests-per-minute", "4000000000"])).await?;
    operator.json(["device", "assign", name, "--all"]).await?;
    operator.key(name).await
}

fn show(said: &[Value]) -> u64 {
    let text = |line: &Value, member: &str| line[member].as_str().unwrap_or_default().to_owned();
    let mut failures: Vec<(String, usize, u64)> = Vec::new();
    for failure in said.iter().filter(|line| line["failure"].is_string()) {
        println!("\n{failure:#}");
        let kind = text(failure, "failure");
        let column = COLUMNS.iter().position(|(_, kinds)| kinds.contains(&&*kind)).unwrap_or(COLUMNS.len() - 1);
        failures.push((text(failure, "operation"), column, failure["times"].as_u64().unwrap_or(1)));
    }
    let count = |of: Option<&str>, column: usize| -> u64 {
        let counted = failures.iter().filter(|(name, at, _)| *at == column && of.is_none_or(|of| of == name));
        counted.map(|(.., times)| times).sum()
    };
    let width = said.iter().map(|line| text(line, "operation").len()).max().unwrap_or(0);
    let row = |name: &str, cases: &str, cells: [String; COLUMNS.len()], statuses: &str| {
        let cells = COLUMNS.iter().zip(cells).map(|((head, _), cell)| format!("  {cell:>0$}", head.len()));
        println!("{name:width$}  {cases:>6}{}  {statuses}", cells.collect::<String>());
    };
    let counts = |of: Option<&str>| std::array::from_fn(|column| count(of, column).to_string());
    println!();
    row("", "cases", COLUMNS.map(|(head, _)| head.to_owned()), "statuses");
    let mut all = 0;
    for line in said.iter().filter(|line| line["statuses"].is_object()) {
        let mut statuses: Vec<_> = line["statuses"].as_object().into_iter().flatten().collect();
        statuses.sort_by_key(|(status, _)| *status);
        let cases: u64 = statuses.iter().filter_map(|(_, count)| count.as_u64()).sum();
        let statuses: Vec<_> = statuses.iter().map(|(status, count)| format!("{status}: {count}")).collect();
        let name = text(line, "operation");
        row(&name, &cases.to_string(), counts(Some(&name)), &statuses.join(", "));
        all += cases;
    }
    row("all", &all.to_string(), counts(None), "");
    failures.iter().map(|(.., times)| times).sum()
}
