//! `cargo xtask walk`: follows a page step by step, and compares the output with the page.
//!
//! The word after the language of a code block is the kind of the step:
//!
//! * `file:FILE` is a new file; `over:FILE` is an edit, in place of the method of the same name.
//! * `run` is lines of shell, `serve:TEXT` a line that keeps running after it has printed that
//!   text.
//! * `says` is the output of the step before; `...` stands for any text.
//! * `missing` is the output of the compiler at that point, and `mistake:RIGHT:WRONG` its output
//!   for such a slip in the edit before.

use crate::cargo::{WRAPPER, must};
use crate::files::list_files;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

struct Page {
    file: &'static str,
    /// The whole page is walked if this is empty.
    section: &'static str,
    /// For pages that show the output of the compiler.
    check: &'static str,
    start: fn(PathBuf, &Path) -> Result<Place>,
}

const PAGES: [Page; 2] = [
    Page {
        file: "CONTRIBUTING.md",
        section: "## Add a tool",
        check: "cargo check --quiet --locked --package cloudphone",
        start: Place::copy,
    },
    Page { file: "docs/service.md", section: "", check: "cargo build --quiet", start: Place::outside },
];

/// The features of libraries that tests need.
const FEATURES: &str = "tests/shared_features";

pub(crate) fn run(root: &Path, page: Option<&str>) -> Result<()> {
    let pages: Vec<_> = PAGES.iter().filter(|known| page.is_none_or(|page| known.file == page)).collect();
    ensure!(!pages.is_empty(), "there are walks in {}", PAGES.map(|known| known.file).join(" and "));
    pages.into_iter().try_for_each(|page| walk(root, page))
}

fn walk(root: &Path, page: &Page) -> Result<()> {
    let Page { file: name, section, check, start } = *page;
    let this = std::env::current_exe()?;
    let target = this.parent().and_then(Path::parent).context("this program lies in a target folder")?;
    let place = start(target.to_owned(), root)?;
    let text = fs::read_to_string(root.join(name)).context(name)?;
    let (_, text) = text.split_once(section).with_context(|| format!("{name} has no section `{section}`"))?;
    let section = if section.is_empty() { text } else { text.split("\n## ").next().unwrap_or_default() };
    let (mut steps, mut edited, mut said, mut serving) = (0, PathBuf::new(), String::new(), None);
    for Block { info, text } in blocks(section) {
        // The reader has the checkout next to the new folder, and no other target folder.
        let text = text.replace("../cloudphone", &root.display().to_string()).replace(" --target-dir target", "");
        let (what, value) = info.split_once(':').unwrap_or((info, ""));
        println!("> {info}");
        let is_shown = !matches!(what, "over" | "file") || section.contains(&format!("`{value}`"));
        ensure!(is_shown, "{name}: only the head of a block, which readers do not see, names {value}");
        match what {
            "over" => {
                edited = place.root.join(value);
                let file = fs::read_to_string(&edited).with_context(|| value.to_owned())?;
                fs::write(&edited, over(&file, &text)?)?;
            }
            "file" => {
                edited = place.root.join(value);
                fs::create_dir_all(edited.parent().context("a file lies in a folder")?)?;
                // With this package, it is built with the libraries of the tests.
                let shared = format!("[dependencies]\nshared-features = {{ path = {:?} }}", root.join(FEATURES));
                fs::write(&edited, text.replace("[dependencies]", &shared))?;
            }
            "run" => {
                said.clear();
                for line in text.replace("\\\n", " ").lines() {
                    let output = place.shell(line).output()?;
                    said += &print(&output);
                    ensure!(output.status.success(), "`{line}` failed:\n{said}");
                }
            }
            "serve" => {
                let started = Serving::start(&place, text.trim(), value)?;
                said.clone_from(&started.said);
                serving = Some(started);
            }
            "says" => must_say(&said, &text)?,
            "missing" => must_say(&place.compiler_refusal(check)?, &text)?,
            "mistake" => {
                let (right, wrong) = value.split_once(':').context("`mistake:RIGHT:WRONG`")?;
                let file = fs::read_to_string(&edited)?;
                let at = file.rfind(right).with_context(|| format!("no `{right}` was written"))?;
                fs::write(&edited, [&file[..at], wrong, &file[at + right.len()..]].concat())?;
                let refused = place.compiler_refusal(check);
                fs::write(&edited, file)?;
                must_say(&refused?, &text)?;
            }
            other => bail!("{name}: a block of the walk is `{other}`, which is nothing that can be done"),
        }
        steps += 1;
    }
    drop(serving);
    ensure!(steps > 0, "{name}: the walk has no step");
    println!("the walk of {name} holds: {steps} steps");
    Ok(())
}

struct Block<'a> {
    info: &'a str,
    /// Without the indentation of its list item.
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

fn over(file: &str, text: &str) -> Result<String> {
    let head = text.split('(').next().unwrap_or_default();
    let begin = file.find(&format!("    {head}(")).with_context(|| format!("the file has no `{head}`"))?;
    let length = file[begin..].find("\n    }\n").context("the method does not end")? + "\n    }\n".len();
    let inner: String = text.lines().map(|line| format!("    {line}\n")).collect();
    Ok([&file[..begin], &inner, &file[begin + length..]].concat())
}

fn must_say(said: &str, shown: &str) -> Result<()> {
    let mut rest = said;
    for part in shown.lines().flat_map(|line| line.split("...")).map(str::trim).filter(|part| !part.is_empty()) {
        let at = rest.find(part).with_context(|| format!("the page shows `{part}`; what was said is:\n{said}"))?;
        rest = &rest[at + part.len()..];
    }
    Ok(())
}

struct Place {
    root: PathBuf,
    /// Outlives the walk, so that the next one is quick.
    target: PathBuf,
    /// The reader does not set these.
    environment: &'static [(&'static str, &'static str)],
}

impl Place {
    /// Copies every file that git knows of, as it is at present. The first walk also copies the
    /// build output, and builds only crates whose sources are newer: those of the copy.
    fn copy(target: PathBuf, checkout: &Path) -> Result<Self> {
        let place = Self { root: target.join("walk/copy"), target: target.join("walk/target"), environment: &[] };
        let (built, seeded) = (target.join("debug"), place.target.join("debug"));
        if !seeded.exists() {
            fs::create_dir_all(seeded.join("deps"))?;
            // The programs of tests have no ending, and are as large as all libraries.
            let line = r#"cp -a build .fingerprint "$0" && cp -a deps/*.* "$0/deps""#;
            must(Command::new("sh").args(["-c", line]).arg(&seeded).current_dir(built))?;
        }
        empty_folder(&place.root)?;
        for file in list_files(checkout)? {
            let to = place.root.join(&file);
            fs::create_dir_all(to.parent().context("a file lies in a folder")?)?;
            fs::copy(checkout.join(&file), to).with_context(|| file.display().to_string())?;
        }
        // `cargo xtask gen` counts the lines of the files that git lists there, and the reader
        // compares with the last commit.
        let git = |arguments: &[&str]| must(Command::new("git").args(arguments).current_dir(&place.root));
        git(&["init", "--quiet"])?;
        git(&["add", "spec"])?;
        git(&["-c", "user.name=walk", "-c", "user.email=walk@example.org", "commit", "--quiet", "--message=spec"])?;
        Ok(place)
    }

    /// Makes an empty folder that shares the build output but is no member of the workspace.
    fn outside(target: PathBuf, _: &Path) -> Result<Self> {
        let environment = &[("CARGO_NET_OFFLINE", "true"), ("CARGO_PROFILE_DEV_DEBUG", "0")];
        let place = Self { root: target.join("walk/outside"), target, environment };
        empty_folder(&place.root).map(|()| place)
    }

    fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        command.arg("-c").arg(line).current_dir(&self.root).envs(self.environment.iter().copied());
        command.env("CARGO_TARGET_DIR", &self.target).env("CARGO_TERM_COLOR", "never");
        // Clippy names types with their modules.
        command.env_remove(WRAPPER);
        command
    }

    fn compiler_refusal(&self, check: &str) -> Result<String> {
        let output = self.shell(check).output()?;
        ensure!(!output.status.success(), "the compiler takes what it is to refuse");
        Ok(print(&output))
    }
}

fn empty_folder(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    Ok(fs::create_dir_all(folder)?)
}

struct Serving {
    child: Child,
    said: String,
    /// Open, so that the program can print more.
    _output: BufReader<ChildStdout>,
}

impl Serving {
    fn start(place: &Place, line: &str, until: &str) -> Result<Self> {
        // `exec` leaves one process, which can be killed.
        let mut child = place.shell(&format!("exec {line}")).stdout(Stdio::piped()).spawn()?;
        let mut output = BufReader::new(child.stdout.take().context("its output is a pipe")?);
        let mut said = String::new();
        while !said.contains(until) {
            ensure!(output.read_line(&mut said)? > 0, "`{line}` ends:\n{said}");
        }
        Ok(Self { child, said, _output: output })
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}

fn print(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat()
}
