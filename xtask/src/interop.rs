//! `cargo xtask interop`: official clients of the protocol, and its conformance suite, against the program as users start it.
//!
//! A client is a script in `tests/interop`, where lock files pin its packages too. It reads what to call, which comes from the
//! contract, as JSON; it answers with a line of JSON that names it, and one for each check. With each client's packages the sample of
//! README.md in its language is run too.

mod samples;

use crate::test::step;
use anyhow::{Context, Result, bail, ensure};
use samples::{JAVASCRIPT, PYTHON, Sample};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use toolwarrant_spec::load;

/// Lock files of the Python client: one for each of its major versions.
const PYTHON_LOCKS: [&str; 2] = ["python-2.txt", "python-1.txt"];
/// Packages of the TypeScript client: since its second major version it has a name of its own.
const TYPESCRIPT_PACKAGES: [&str; 2] = ["@modelcontextprotocol/client", "@modelcontextprotocol/sdk"];

/// Runs every client against a program of its own, shows what each found, and closes with a count.
pub(crate) fn run(root: &Path) -> Result<()> {
    step(root, &["build", "--locked", "--package", "cloudphone", "--bin", "cloudphone"])?;
    let this = std::env::current_exe()?;
    let built = this.parent().context("this program lies in a folder")?;
    let contract = load(&root.join("spec")).map_err(|report| anyhow::anyhow!("{report}"))?;
    let tools = contract.tools().map(|tool| {
        let examples: Vec<_> = tool.examples.iter().map(|example| &example.arguments).collect();
        json!({"name": tool.name, "task": tool.task().is_some(), "examples": examples})
    });
    let bench = Bench {
        scripts: root.join("tests/interop"),
        home: built.with_file_name("interop"),
        program: built.join("cloudphone"),
        plan: json!({"versions": contract.service.served, "tools": tools.collect::<Vec<_>>()}),
    };
    let node = bench.install_node()?;
    let mut clients = Vec::new();
    for lock in PYTHON_LOCKS {
        let folder = bench.install_python(lock)?;
        let python = folder.join("bin/python");
        let mut found = bench.run(Command::new(&python).arg(bench.scripts.join("client.py")))?;
        let sample = Sample::read(root, &PYTHON, &found.client)?;
        found.checks.extend(sample.try_out(&python, &folder, || bench.server())?);
        clients.push(found);
    }
    for package in TYPESCRIPT_PACKAGES {
        let mut found = bench.run(Command::new("node").args(["client.mjs", package]).current_dir(&node))?;
        let sample = Sample::read(root, &JAVASCRIPT, &found.client)?;
        found.checks.extend(sample.try_out(Path::new("node"), &node, || bench.server())?);
        clients.push(found);
    }
    let not_applicable = bench.scripts.join("conformance.yml");
    let suite = bench.run(Command::new("node").arg("conformance.mjs").arg(not_applicable).current_dir(&node))?;
    let mut failures = Vec::new();
    let passed = show(&clients, contract.tools().map(|tool| &*tool.name), &mut failures);
    let passed = passed + show(&[suite], [].into_iter(), &mut failures);
    for failure in &failures {
        println!("{failure}");
    }
    println!("{passed} passed, {} failed", failures.len());
    ensure!(failures.is_empty(), "the clients and the server do not agree; the table shows where");
    Ok(())
}

/// Where clients live, and what they try.
struct Bench {
    scripts: PathBuf,
    /// What is installed, and what servers leave.
    home: PathBuf,
    program: PathBuf,
    plan: Value,
}

/// What one client found: each check with the reason of its failure.
struct Findings {
    client: String,
    checks: Vec<(String, Option<String>)>,
}

impl Bench {
    /// The folder of a Python with the packages in this lock file.
    fn install_python(&self, lock: &str) -> Result<PathBuf> {
        let folder = self.home.join(lock.trim_end_matches(".txt"));
        self.install(&folder, &[lock], |folder| {
            must(Command::new("python3").args(["-m", "venv"]).arg(folder), "Python 3.11 or later, with venv and pip")?;
            let flags = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"];
            let python = &mut Command::new(folder.join("bin/python"));
            must(python.args(flags).arg("--requirement").arg(folder.join(lock)), "pip and a package index")
        })?;
        Ok(folder)
    }

    /// The folder of the packages for Node, with the scripts beside them, as its resolution of imports wants it.
    fn install_node(&self) -> Result<PathBuf> {
        let folder = self.home.join("node");
        self.install(&folder, &["package.json", "package-lock.json"], |folder| {
            let flags = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
            must(Command::new("npm").args(flags).current_dir(folder), "Node.js 20 or later, with npm")
        })?;
        for script in ["client.mjs", "conformance.mjs"] {
            fs::copy(self.scripts.join(script), folder.join(script))?;
        }
        Ok(folder)
    }

    /// Fills `folder` with what these lock files name, unless it is there from an earlier time.
    fn install(&self, folder: &Path, locks: &[&str], fill: impl Fn(&Path) -> Result<()>) -> Result<()> {
        let wanted: Vec<_> = locks.iter().map(|lock| fs::read(self.scripts.join(lock))).collect::<Result<_, _>>()?;
        let mark = folder.join("installed");
        if fs::read(&mark).is_ok_and(|found| found == wanted.concat()) {
            return Ok(());
        }
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        for (lock, text) in locks.iter().zip(&wanted) {
            fs::write(folder.join(lock), text)?;
        }
        fill(folder)?;
        Ok(fs::write(mark, wanted.concat())?)
    }

    /// Starts a program that has nothing behind it.
    fn server(&self) -> Result<Server> {
        Server::start(&self.program, &self.home.join("server"))
    }

    /// Runs a client against a program of its own.
    fn run(&self, client: &mut Command) -> Result<Findings> {
        println!("\n> {client:?}");
        let server = self.server()?;
        let mut plan = self.plan.clone();
        plan["url"] = server.url.clone().into();
        plan["keys"] = server.keys.clone().into();
        let running = client.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut running = running.with_context(|| format!("cannot run {:?}", client.get_program()))?;
        serde_json::to_writer(running.stdin.take().context("a client has an input")?, &plan)
            .context("the client reads nothing")?;
        let mut findings = Findings { client: format!("{client:?}"), checks: Vec::new() };
        for line in running.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()) {
            let line = line?;
            println!("{line}");
            let mut said: Value = serde_json::from_str(&line).with_context(|| format!("not JSON: {line}"))?;
            let mut text = |member: &str| match said[member].take() {
                Value::String(text) => Some(text),
                _ => None,
            };
            match (text("client"), text("check")) {
                (Some(client), _) => findings.client = client,
                (None, check) => findings.checks.push((check.context("a line names its check")?, text("failure"))),
            }
        }
        let broke_off = !running.wait()?.success();
        findings.checks.push(("its own end".to_owned(), broke_off.then(|| "it says why above".to_owned())));
        Ok(findings)
    }
}

/// The program, running. It ends with this value.
struct Server {
    url: String,
    /// As it prints them: first that of the application that may do everything, then that of one that may only read.
    keys: Vec<Value>,
    child: Child,
}

impl Server {
    fn start(program: &Path, home: &Path) -> Result<Self> {
        let _ = fs::remove_dir_all(home);
        fs::create_dir_all(home).with_context(|| format!("cannot create {}", home.display()))?;
        let mut command = Command::new(program);
        command.args(["--listen", "127.0.0.1:0", "--data"]).arg(home.join("data"));
        let child = command.stdout(Stdio::piped()).stderr(File::create(home.join("log"))?).spawn();
        let child = child.with_context(|| format!("cannot run {}", program.display()))?;
        let mut server = Self { url: String::new(), keys: Vec::new(), child };
        for line in server.child.stdout.as_mut().into_iter().flat_map(|out| BufReader::new(out).lines()) {
            let line = line?;
            match line.trim().split_once(' ') {
                Some(("X-Api-Key:", id)) => server.keys.push(json!({"id": id.trim()})),
                Some(("X-Api-Secret:", secret)) => {
                    server.keys.last_mut().context("a secret follows its key")?["secret"] = secret.trim().into();
                }
                _ if line.contains("Ctrl-C") => return Ok(server),
                _ if line.ends_with("/mcp") => server.url = line.rsplit(' ').next().unwrap_or_default().to_owned(),
                _ => {}
            }
        }
        bail!("the program did not start; {} says why", home.join("log").display())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command to its end. `needs` is what to install where there is no such program.
fn must(command: &mut Command, needs: &str) -> Result<()> {
    println!("\n> {command:?}");
    let status =
        command.status().with_context(|| format!("cannot run {:?}: install {needs}", command.get_program()))?;
    ensure!(status.success(), "{command:?} failed; it says why above, and it needs {needs}");
    Ok(())
}

/// Prints a table of checks and clients and collects what failed; answers with how many passed. A check that one client made,
/// and each of those `required`, is wanted of all.
fn show<'a>(clients: &'a [Findings], required: impl Iterator<Item = &'a str>, failures: &mut Vec<String>) -> u64 {
    let mut checks: Vec<&str> = Vec::new();
    for check in clients.iter().flat_map(|client| client.checks.iter().map(|(check, _)| &**check)).chain(required) {
        if !checks.contains(&check) {
            checks.push(check);
        }
    }
    let width = checks.iter().map(|check| check.len()).max().unwrap_or(0);
    let heads: Vec<_> = clients.iter().map(|client| &*client.client).collect();
    println!("\n{:width$}  {}", "", heads.join("  "));
    let mut passed = 0;
    for check in checks {
        let mut row = format!("{check:width$}");
        for Findings { client, checks } in clients {
            let found = checks.iter().find(|(name, _)| name == check);
            let failure = found.map_or(Some("was not tried"), |(_, failure)| failure.as_deref());
            passed += u64::from(failure.is_none());
            failures.extend(failure.map(|why| format!("{client}: {check}: {why}")));
            row += &format!("  {:1$}", if failure.is_none() { "ok" } else { "FAILED" }, client.len());
        }
        println!("{}", row.trim_end());
    }
    passed
}
