//! `cargo xtask walk`: follows CONTRIBUTING.md, step by step, on a copy of the repository.
//!
//! The text after the language of a code block defines its purpose:
//! * `append=FILE`, `top=FILE` and `into=FILE` are edits: at the end of a file, before its first
//!   `use`, or at the end of its first item with a body.
//! * `run` is a line for the shell.
//! * `says` is output that the step before must print.
//! * `missing` is output that the compiler must print at that point.
//! * `mistake=RIGHT:WRONG` is output that it must print for such a mistake in the edit before.

use crate::lines::list_files;
use crate::python::must;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PAGE: &str = "CONTRIBUTING.md";

/// The heading where the walk begins.
const SECTION: &str = "## Add a tool";

/// Carries out the walk, and prints each step.
pub(crate) fn run(root: &Path) -> Result<()> {
    let this = std::env::current_exe()?;
    let home = this.parent().and_then(Path::parent).context("this program must be in a target folder")?.join("walk");
    let copy = Copy { root: home.join("copy"), target: home.join("target") };
    copy.make(root)?;
    let text = fs::read_to_string(root.join(PAGE)).context(PAGE)?;
    let (_, text) = text.split_once(SECTION).with_context(|| format!("{PAGE} has no section `{SECTION}`"))?;
    let section = text.split("\n## ").next().unwrap_or_default();
    let (mut steps, mut edited, mut said) = (0, PathBuf::new(), String::new());
    for Block { info, text } in blocks(section) {
        let (what, value) = info.split_once('=').unwrap_or((info, ""));
        println!("> {info}");
        match what {
            "append" | "top" | "into" => {
                edited = copy.root.join(value);
                let file = fs::read_to_string(&edited).with_context(|| value.to_owned())?;
                let written = match what {
                    "append" => format!("{file}\n{text}"),
                    "top" => file.replacen("\nuse ", &format!("\n{text}use "), 1),
                    _ => into(&file, &text)?,
                };
                fs::write(&edited, written)?;
            }
            "run" => {
                said.clear();
                for line in text.lines() {
                    let output = copy.shell(line)?;
                    said += &print(&output);
                    ensure!(output.status.success(), "`{line}` failed:\n{said}");
                }
            }
            "says" => must_say(&said, &text)?,
            "missing" => must_say(&copy.compiler_refusal()?, &text)?,
            "mistake" => {
                let (right, wrong) = value.split_once(':').context("`mistake=RIGHT:WRONG`")?;
                let file = fs::read_to_string(&edited)?;
                let at = file.rfind(right).with_context(|| format!("no `{right}` was written"))?;
                fs::write(&edited, [&file[..at], wrong, &file[at + right.len()..]].concat())?;
                let refused = copy.compiler_refusal();
                fs::write(&edited, file)?;
                must_say(&refused?, &text)?;
            }
            other => bail!("{PAGE}: unknown kind of block `{other}`"),
        }
        steps += 1;
    }
    ensure!(steps > 0, "{PAGE}: the walk has no step");
    println!("all {steps} steps of the walk of {PAGE} work");
    Ok(())
}

/// A fenced code block, with the text after its language.
struct Block<'a> {
    info: &'a str,
    /// The text without the indentation of its list item.
    text: String,
}

fn blocks(section: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut lines = section.lines();
    while let Some(line) = lines.next() {
        let Some(fence) = line.trim_start().strip_prefix("```") else { continue };
        let indent = line.len() - line.trim_start().len();
        let body = lines.by_ref().take_while(|line| line.trim_start() != "```");
        let text = body.map(|line| line.get(indent..).unwrap_or_default().to_owned() + "\n").collect();
        if let Some((_, info)) = fence.split_once(' ') {
            blocks.push(Block { info, text });
        }
    }
    blocks
}

/// Adds `text` to the end of the first item of `file`, one level deeper.
fn into(file: &str, text: &str) -> Result<String> {
    let end = file.find("\n}\n").context("the file has no item to write into")?;
    let inner: String =
        text.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") }).collect();
    Ok(format!("{}\n\n{}{}", &file[..end], inner, &file[end + 1..]))
}

/// Checks that each line that the page shows was printed, in this order.
fn must_say(said: &str, shown: &str) -> Result<()> {
    let mut rest = said;
    for line in shown.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let at = rest.find(line).with_context(|| format!("{PAGE} shows `{line}`; the output is:\n{said}"))?;
        rest = &rest[at + line.len()..];
    }
    Ok(())
}

/// A copy of the repository, with its own target folder, which later runs use again.
struct Copy {
    root: PathBuf,
    target: PathBuf,
}

impl Copy {
    /// Copies every file that git lists, in its present state.
    fn make(&self, root: &Path) -> Result<()> {
        if self.root.exists() {
            fs::remove_dir_all(&self.root)?;
        }
        for file in list_files(root)? {
            let to = self.root.join(&file);
            fs::create_dir_all(to.parent().context("a file must be in a folder")?)?;
            fs::copy(root.join(&file), to).with_context(|| file.display().to_string())?;
        }
        // `cargo xtask gen` counts the lines of the files that git lists there.
        must(Command::new("git").args(["init", "--quiet"]).current_dir(&self.root)).map(drop)
    }

    fn shell(&self, line: &str) -> Result<Output> {
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(line)
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_TERM_COLOR", "never");
        // The variables that cargo sets for this program do not apply to the copy.
        for (name, _) in
            std::env::vars().filter(|(name, _)| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
        {
            command.env_remove(name);
        }
        command.output().with_context(|| format!("cannot run `{line}`"))
    }

    /// Returns the compiler's messages about code that it must refuse.
    fn compiler_refusal(&self) -> Result<String> {
        let output = self.shell("cargo check --quiet --locked --package cloudphone")?;
        ensure!(!output.status.success(), "the compiler accepts code that it must refuse");
        Ok(print(&output))
    }
}

fn print(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat()
}
