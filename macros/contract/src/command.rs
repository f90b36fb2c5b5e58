//! The commands check, release, accept, new and explain.

use crate::accepted::{self, Accepted};
use crate::base::IN_FORCE;
use crate::check::{Against, Judgement, breaks, check};
use crate::release;
use crate::scaffold::{NewTool, Question, new_tool};
use crate::source::display_path;
use crate::verify::write_json;
use crate::version::Version;
use serde_json::json;
use std::fs;
use std::io::ErrorKind;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use toolwarrant_common::{escape_line, escape_text, read_text, suggestion};
use toolwarrant_gate::{Audience, ChangeRule, rule, rules};
use toolwarrant_reader::{ACCEPTED, RELEASED, Rule, documents, load, replace};

const CHANGES: &str = include_str!("examples/changes.snap");

const MISTAKES: &str = include_str!("examples/mistakes.snap");

/// A command on a contract.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum GateCommand {
    /// Compare the contract with the released one: exits with 0 if it is sound, with 1 if there is
    /// something to do, and with 2 if it was not compared
    Check {
        /// Also show the changes since this revision, and read nothing else of it
        #[arg(long, value_name = "REVISION")]
        base: Option<String>,
        /// Compare with this file, folder or revision in place of the released record
        #[arg(long, value_name = "FILE|DIR|REVISION", conflicts_with = "base")]
        against: Option<String>,
        /// Print the report as JSON
        #[arg(long)]
        json: bool,
    },
    /// Write the record of the contract as it is released, and the section of its version in
    /// CHANGELOG.md next to the contract's folder
    Release {
        /// Version, which `[service]` in service.toml has
        version: String,
    },
    /// Accept a break until the next release
    Accept {
        /// Fact that changed; the rule comes before it if several judge the fact
        #[arg(value_name = "[RULE] FACT", num_args = 1..=2, required = true)]
        fact: Vec<String>,
        /// Reason, which the changelog shows
        #[arg(long)]
        reason: String,
    },
    /// Add to the contract and to the code
    New {
        /// The part to add
        #[command(subcommand)]
        part: NewPart,
    },
    /// Explain a rule of changes or of the compiler
    Explain {
        /// Id of the rule
        rule: String,
    },
}

impl GateCommand {
    #[must_use]
    pub fn check() -> Self {
        Self::Check { base: None, against: None, json: false }
    }
}

/// A part that can be added.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum NewPart {
    /// Add a tool: its stanza, its result type, a handler that compiles, and a test; asks for what
    /// the flags leave out, and writes nothing unless the contract then loads
    Tool(Box<NewTool>),
}

#[derive(Clone, Copy, Debug)]
pub struct GateContext<'a> {
    pub folder: &'a Path,
    pub package: &'a Path,
    /// In UTC, as `YYYY-MM-DD`.
    pub today: &'a str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateAnswer {
    pub text: String,
    /// 0: done, and the contract is sound. 1: there is something to do. 2: nothing was compared.
    pub code: u8,
}

#[must_use]
pub fn today() -> String {
    jiff::Timestamp::now().strftime("%F").to_string()
}

#[must_use]
pub fn execute(command: &GateCommand, context: GateContext<'_>) -> GateAnswer {
    let GateContext { folder, today, .. } = context;
    let done = match command {
        GateCommand::Check { base, against, json } => {
            let against = Against { revision: base.as_deref(), other: against.as_deref() };
            let judgement = check(folder, against);
            let code = judgement.as_ref().map_or(2, |judgement| u8::from(!judgement.refusals.is_empty()));
            let text = match (judgement, json) {
                (Ok(judgement), true) => write_json(&judgement.json()),
                (Err(why), true) => write_json(&json!({"compared": false, "reason": why})),
                (Ok(judgement), false) => escape_text(&judgement.text()),
                (Err(why), false) => escape_text(&format!("not compared: {why}\n")),
            };
            return GateAnswer { text, code };
        }
        GateCommand::Release { version } => write_release(folder, version, today),
        GateCommand::Accept { fact, reason } => accept(folder, fact, reason),
        GateCommand::New { part: NewPart::Tool(tool) } => add_tool(context, (**tool).clone()),
        GateCommand::Explain { rule } => explain(rule),
    };
    let (text, code) = done.map_or_else(|(why, code)| (why, code), |text| (text, 0));
    GateAnswer { text: escape_text(text.trim_end()) + "\n", code }
}

type Done = Result<String, (String, u8)>;

fn write_release(folder: &Path, version: &str, date: &str) -> Done {
    let refuse = |why: String| (why, 1);
    let contract = load(folder).map_err(|report| (report.to_string(), 2))?;
    let wanted = Version::parse(version).map_err(refuse)?;
    let written = &contract.service.version;
    if written != version {
        return Err(refuse(format!(
            "`[service]` in service.toml has version {written}: write `version = \"{version}\"`"
        )));
    }
    let judgement = match folder.join(RELEASED).exists() {
        true => Some(check(folder, Against::default()).map_err(|why| (format!("not compared: {why}"), 2))?),
        false => None,
    };
    if let Some(judgement) = &judgement {
        if !judgement.refusals.is_empty() {
            return Err(refuse(judgement.text()));
        }
        if Version::parse(&judgement.versions[0]).is_ok_and(|before| wanted <= before) {
            return Err(refuse(format!("{version} was released before: write a higher version under `[service]`")));
        }
    }
    let changes: Vec<_> = judgement.iter().flat_map(|judgement| &judgement.changes).collect();
    let changes: Vec<_> = changes.iter().map(|judged| (&judged.change, judged.accepted.as_ref())).collect();
    let log = folder.parent().unwrap_or(folder).join("CHANGELOG.md");
    let text = release::changelog(&read_if_any(&log)?, (version, date), &changes);
    let before = release::read(folder).ok().map(|(record, _)| record);
    let write = |path: PathBuf, text: &str| replace(&path, text).map_err(|error| refuse(error.to_string()));
    write(log.clone(), &text)?;
    write(folder.join(RELEASED), &release::release_text(&contract, before.as_ref(), date))?;
    // The record in force names the released one.
    let contract = load(folder).map_err(|report| (report.to_string(), 2))?;
    let in_force = folder.join(IN_FORCE);
    if let (true, Some(text)) = (in_force.exists(), documents(&contract).get(Path::new("contract.toml"))) {
        write(in_force, text)?;
    }
    let accepted = folder.join(ACCEPTED);
    if accepted.exists() {
        fs::remove_file(&accepted).map_err(|error| refuse(format!("cannot remove {}: {error}", accepted.display())))?;
    }
    let names = [folder.join(RELEASED), log].map(|path| display_path(folder, &path));
    Ok(format!("released {version}: commit {}, and the files of `gen`", names.join(", ")))
}

fn read_if_any(path: &Path) -> Done {
    match read_text(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err((format!("cannot read {}: {error}", escape_line(&path.to_string_lossy())), 1))
        }
        read => Ok(read.unwrap_or_default()),
    }
}

fn accept(folder: &Path, names: &[String], reason: &str) -> Done {
    let judgement = check(folder, Against::default()).map_err(|why| (format!("not compared: {why}"), 2))?;
    let Judgement { changes, .. } = judgement;
    let all: Vec<_> = changes.iter().map(|judged| &judged.change).filter(|change| breaks(change)).collect();
    let (fact, rule) = match names {
        [rule, fact, ..] => (fact.as_str(), Some(rule)),
        names => (names.first().map_or("", String::as_str), None),
    };
    let meant = all.iter().filter(|change| change.fact == fact && rule.is_none_or(|rule| *rule == change.rule.id));
    let change = match &meant.collect::<Vec<_>>()[..] {
        [change] => **change,
        [] => {
            let help = suggestion(fact, all.iter().map(|change| change.fact.as_str()));
            return Err((format!("the contract has no break of `{}`; {help}", escape_line(fact)), 1));
        }
        several => {
            let rules: Vec<_> = several.iter().map(|change| change.rule.id.as_str()).collect();
            return Err((format!("several rules judge `{fact}`; write one before it: {}", rules.join(", ")), 1));
        }
    };
    if reason.trim().is_empty() {
        return Err(("the reason is empty, and the changelog shows it".to_owned(), 1));
    }
    let path = folder.join(ACCEPTED);
    let known = read_if_any(&path)?;
    let mistaken = |mistake: accepted::Mistake| (format!("{}: {}", path.display(), mistake.message), 1);
    let mut all = accepted::parse(&known).map_err(mistaken)?;
    all.retain(|known| !known.concerns(change));
    all.push(Accepted::of(change, reason));
    replace(&path, &accepted::text(&all)).map_err(|error| (error.to_string(), 1))?;
    Ok(format!("accepted until the next release: {}", escape_line(&change.message)))
}

fn add_tool(GateContext { folder, package, .. }: GateContext<'_>, mut tool: NewTool) -> Done {
    let contract = load(folder).map_err(|report| (report.to_string(), 1))?;
    let mut open = Vec::new();
    for (question, answer) in tool.missing(&contract) {
        match ask(&question) {
            Some(text) => *answer = Some(text),
            None => open.push(format!("--{}: {}", question.key.replace('_', "-"), question.text)),
        }
    }
    if !open.is_empty() {
        return Err((format!("write on the command line, because nobody answers here:\n{}", open.join("\n")), 1));
    }
    let written = new_tool(package, folder, &tool).map_err(|why| (why, 1))?;
    let written: Vec<_> = written.iter().map(|path| path.display().to_string()).collect();
    Ok(format!("wrote {}; write the handler, then run `gen`", written.join(", ")))
}

fn ask(question: &Question) -> Option<String> {
    let known = if question.known.is_empty() { String::new() } else { format!(" [{}]", question.known.join(", ")) };
    while io::stdin().is_terminal() {
        eprint!("{}{known} ", question.text);
        let mut answer = String::new();
        if io::stdin().read_line(&mut answer).ok()? == 0 {
            return None;
        }
        let answer = answer.trim();
        if question.optional || !answer.is_empty() {
            return Some(answer.to_owned());
        }
    }
    None
}

fn explain(id: &str) -> Done {
    if let Some(ChangeRule { id, verdicts, bump, why, help, mirror, .. }) = rule(id) {
        let verdicts =
            Audience::ALL.map(|audience| format!("{}: {}", audience.name(), verdicts[audience as usize].name()));
        let bump = bump.name();
        return Ok(format!(
            "{id}: a rule of changes\n\n{}\nversion from 1.0 on: {bump}\n\nwhy: {why}\nhelp: {help}\nthe opposite: {mirror}\n\n\
             An example:\n\n{}",
            verdicts.join("\n"),
            example(CHANGES, id)
        ));
    }
    let compiler = || Rule::ALL.iter();
    if let Some(known) = compiler().find(|known| known.id() == id) {
        return Ok(format!(
            "{id}: a rule of the compiler\n\n{}\n\nAn example:\n\n{}",
            known.text(),
            example(MISTAKES, id)
        ));
    }
    let all = rules().iter().map(|rule| rule.id.as_str()).chain(compiler().map(|rule| rule.id()));
    Err((format!("unknown rule `{}`; {}", escape_line(id), suggestion(id, all)), 1))
}

fn example<'a>(reports: &'a str, id: &str) -> &'a str {
    let mut sections = reports.split("\n## ").filter_map(|section| section.split_once("\n\n"));
    sections.find(|(head, _)| *head == id).map_or("", |(_, report)| report.trim_end())
}
