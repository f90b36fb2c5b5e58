//! The samples of README.md: taken out of the page, and run as they stand with the address and the key of a server.
//!
//! A sample is for the latest major version of its package. Comments that begin with `version 1: ` are what that version has in place
//! of the line above them.

use super::Server;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;

const README: &str = "README.md";

/// What the sample's write ends as, and so what it prints.
const ENDS_AS: &str = "success";

/// A language that README.md has a sample in.
pub(super) struct Language {
    fence: &'static str,
    file: &'static str,
    comment: &'static str,
    /// What is replaced for a client that gives up reading after 5 s and does not say how long to wait.
    impatient: [(&'static str, &'static str); 2],
}

pub(super) const PYTHON: Language = Language {
    fence: "```python\n",
    file: "sample.py",
    comment: "# version 1: ",
    impatient: [("timeout=35", "timeout=5"), (", wait_seconds=25", "")],
};

pub(super) const JAVASCRIPT: Language = Language {
    fence: "```js\n",
    file: "sample.mjs",
    comment: "// version 1: ",
    impatient: [
        (
            "\n\n",
            "\nconst patient = fetch;
             globalThis.fetch = (url, init) => {
               const signals = [init.signal, AbortSignal.timeout(5000)].filter(Boolean);
               return patient(url, { ...init, signal: AbortSignal.any(signals) });
             };\n",
        ),
        (", wait_seconds: 25", ""),
    ],
};

/// The sample of a language, for one major version of its package.
pub(super) struct Sample {
    language: &'static Language,
    text: String,
}

impl Sample {
    /// Takes the sample out of README.md. `client` is the name of a client with its version: `Python 2.3.0`.
    pub(super) fn read(root: &Path, language: &'static Language, client: &str) -> Result<Self> {
        let page = fs::read_to_string(root.join(README)).context(README)?;
        let Language { fence, comment, .. } = language;
        let begun = page.split_once(fence).map(|(_, rest)| rest);
        let text = begun.and_then(|rest| Some(rest.split_once("```")?.0));
        let text = text.with_context(|| format!("{README} has no block that begins with {fence:?}"))?;
        let first = client.split(' ').nth(1).is_some_and(|version| version.starts_with("1."));
        let (mut lines, mut above) = (Vec::new(), "");
        for line in text.lines() {
            match line.strip_prefix(comment) {
                None => lines.push(line),
                Some(own) if first => {
                    if !above.starts_with(comment) {
                        lines.pop();
                    }
                    lines.push(own);
                }
                Some(_) => {}
            }
            above = line;
        }
        Ok(Self { language, text: lines.join("\n") + "\n" })
    }

    /// Runs it in `folder` as it stands and then impatiently, each against a server of its own. Returns each check with the reason of
    /// its failure.
    pub(super) fn try_out(
        &self,
        interpreter: &Path,
        folder: &Path,
        start: impl Fn() -> Result<Server>,
    ) -> Result<Vec<(String, Option<String>)>> {
        let Self { language, text } = self;
        let impatient = language.impatient.iter().try_fold(text.clone(), |text, (from, to)| swap(&text, from, to))?;
        let both = [("the sample of README.md", text), ("the same, 5 s to read, no wait_seconds", &impatient)];
        both.into_iter()
            .map(|(check, text)| {
                Ok((check.to_owned(), run(interpreter, &folder.join(language.file), text, &start()?)?))
            })
            .collect()
    }
}

/// Runs a sample. Returns what it said unless it ended well.
fn run(interpreter: &Path, file: &Path, text: &str, server: &Server) -> Result<Option<String>> {
    let key = server.keys.first().context("the program shows a key")?;
    let text = swap(text, "http://127.0.0.1:8080/mcp", &server.url)?;
    let text = swap(&text, "KEY_ID", key["id"].as_str().unwrap_or_default())?;
    let text = swap(&text, "SECRET", key["secret"].as_str().unwrap_or_default())?;
    fs::write(file, text)?;
    println!("\n> {interpreter:?} {file:?}");
    let output = Command::new(interpreter).arg(file).output()?;
    let [said, log] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    println!("{}", said.trim_end());
    let well = output.status.success() && said.trim() == ENDS_AS;
    Ok((!well).then(|| format!("it ended with {} and said {said}{log}", output.status)))
}

/// Replaces a part that must be there.
fn swap(text: &str, from: &str, to: &str) -> Result<String> {
    ensure!(text.contains(from), "the sample of {README} does not say {from:?}:\n{text}");
    Ok(text.replacen(from, to, 1))
}
