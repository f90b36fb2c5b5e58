//! `cargo xtask fuzz`: schemathesis against the program, with signed requests that it makes of the OpenAPI document.
//!
//! `tests/interop/schemathesis_v1.py` drives it; its packages are pinned in a lock file beside it. It reads what to do as JSON, and answers
//! with a line of JSON for each operation and each kind of failure. What it and the program leave lies in a folder of the target.

use crate::python::{must, python};
use crate::test::step;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use toolwarrant_spec::load;

const SCRIPT: &str = "schemathesis_v1.py";
const LOCK: &str = "schemathesis.txt";

/// Failures by the column that counts them. The last counts all others.
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

/// How much.
#[derive(clap::Args)]
pub(crate) struct Cases {
    /// Requests that are made at least
    #[arg(long, default_value_t = 20_000)]
    cases: u64,
    /// Decides what is asked for
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Tries the optimised program
    #[arg(long)]
    release: bool,
    /// Tries a program that is built already
    #[arg(long, conflicts_with = "release")]
    program: Option<PathBuf>,
}

/// Makes the requests, shows what came of them, and fails unless every answer is as the document says.
pub(crate) fn run(root: &Path, Cases { cases, seed, release, program }: Cases) -> Result<()> {
    let this = std::env::current_exe()?;
    let target = this.parent().and_then(Path::parent).context("this program lies in a target folder")?;
    let program = match program {
        Some(program) => program.canonicalize().with_context(|| program.display().to_string())?,
        None => built(root, target, release)?,
    };
    let home = target.join("fuzz");
    let python = python(&root.join("tests/interop").join(LOCK), &home.join("python"))?.join("python");
    let server = Server::start(&program, &home.join("server"))?;
    let contract = load(&root.join("spec")).map_err(|report| anyhow::anyhow!("{report}"))?;
    let judges = |code: &str| contract.role("invalid_argument").is_some_and(|error| error.code == code);
    let judging = contract.tools().filter(|tool| tool.own_errors.iter().any(|error| judges(&error.code)));
    let plan = json!({
        "url": server.url,
        "key": server.key(&program)?,
        "cases": cases,
        "seed": seed,
        "judging": judging.map(|tool| &tool.name).collect::<Vec<_>>(),
    });
    println!("\n> cargo xtask fuzz: {cases} cases, seed {seed}, {}", program.display());
    let mut driver = Command::new(python);
    driver.arg(root.join("tests/interop").join(SCRIPT)).current_dir(&server.home);
    let mut driver = driver.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot run Python")?;
    serde_json::to_writer(driver.stdin.take().context("the driver has an input")?, &plan)?;
    let mut said: Vec<Value> = Vec::new();
    for line in driver.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()) {
        let line = line?;
        said.push(serde_json::from_str(&line).with_context(|| format!("not JSON: {line}"))?);
    }
    ensure!(driver.wait()?.success(), "the driver broke off; it says why above, and {} more", server.home.display());
    let failures = show(&said);
    ensure!(
        failures == 0,
        "answers are not as the document says: examples are above, all in {}",
        server.home.display()
    );
    Ok(())
}

fn built(root: &Path, target: &Path, release: bool) -> Result<PathBuf> {
    let mut arguments = vec!["build", "--locked", "--package", "cloudphone", "--bin", "cloudphone"];
    arguments.extend(release.then_some("--release"));
    step(root, &arguments)?;
    Ok(target.join(if release { "release" } else { "debug" }).join("cloudphone"))
}

/// The program, running. It ends with this value.
struct Server {
    url: String,
    home: PathBuf,
    child: Child,
}

impl Server {
    /// Starts it in an empty folder.
    fn start(program: &Path, home: &Path) -> Result<Self> {
        let _ = fs::remove_dir_all(home);
        fs::create_dir_all(home).with_context(|| format!("cannot create {}", home.display()))?;
        let mut command = Command::new(program);
        command.args(["--listen", "127.0.0.1:0", "--data"]).arg(home.join("data"));
        let child = command.stdout(Stdio::piped()).stderr(File::create(home.join("log"))?).spawn();
        let child = child.with_context(|| format!("cannot run {}", program.display()))?;
        let mut server = Self { url: String::new(), home: home.to_owned(), child };
        for line in server.child.stdout.as_mut().into_iter().flat_map(|out| BufReader::new(out).lines()) {
            let line = line?;
            if let Some(url) = line.strip_suffix("/mcp").and_then(|line| line.split(' ').next_back()) {
                server.url = url.to_owned();
            }
            if line.contains("Ctrl-C") {
                return Ok(server);
            }
        }
        bail!("the program did not start; {} says why", home.join("log").display())
    }

    /// Makes an application that may do everything, as often as it wants, and returns a key of it.
    fn key(&self, program: &Path) -> Result<Value> {
        let budget = ["--requests-per-minute", "4000000000"];
        let operator = |arguments: &[&str]| {
            must(Command::new(program).args(arguments).args(["--json", "--data"]).arg(self.home.join("data")))
        };
        operator(
            &[&["app", "create", "fuzz", "--permission", "device", "--permission", "stream"], &budget[..]].concat(),
        )?;
        operator(&["device", "assign", "fuzz", "--all"])?;
        let made: Value = serde_json::from_str(&operator(&["key", "create", "fuzz"])?)?;
        Ok(json!({"id": made["key_id"], "secret": made["secret"]}))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Prints an example of each kind of failure and a table of operations; answers with how many failures there are.
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
