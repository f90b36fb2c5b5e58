//! The samples of docs/clients.md, unchanged except for the address and the key of a server.
//!
//! A sample is for the latest major version of its package. A comment that begins with
//! `version 1: ` contains the replacement of the line above it for that version.

use super::findings::Findings;
use anyhow::{Context, Result, ensure};
use driver::Instance;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PAGE: &str = "docs/clients.md";

const ENDS_AS: &str = "success";

pub(super) struct Language {
    name: &'static str,
    fence: &'static str,
    ending: &'static str,
    comment: &'static str,
    /// The replacement for a client that stops reading after 5 s and does not send how long to
    /// wait.
    impatient: [(&'static str, &'static str); 2],
}

pub(super) const PYTHON: Language = Language {
    name: "Python",
    fence: "```python\n",
    ending: "py",
    comment: "# version 1: ",
    impatient: [("timeout=35", "timeout=5"), (", wait_seconds=25", "")],
};

pub(super) const JAVASCRIPT: Language = Language {
    name: "TypeScript",
    fence: "```js\n",
    ending: "mjs",
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

pub(super) struct Sample {
    language: &'static Language,
    name: String,
    file: PathBuf,
    text: String,
}

impl Sample {
    pub(super) fn read(root: &Path, language: &'static Language, folder: &Path, first: bool) -> Result<Self> {
        let page = fs::read_to_string(root.join(PAGE)).context(PAGE)?;
        let Language { name, fence, ending, comment, .. } = language;
        let begun = page.split_once(fence).map(|(_, rest)| rest);
        let text = begun.and_then(|rest| Some(rest.split_once("```")?.0));
        let text = text.with_context(|| format!("{PAGE} has no block that begins with {fence:?}"))?;
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
        let major = if first { 1 } else { 2 };
        let file = folder.join(format!("sample-{major}.{ending}"));
        Ok(Self { language, name: format!("{PAGE}, {name} {major}"), file, text: lines.join("\n") + "\n" })
    }

    pub(super) fn try_out(&self, interpreter: &Path, start: impl Fn() -> Result<Instance>) -> Result<Findings> {
        let Self { language, name, file, text } = self;
        let impatient = language.impatient.iter().try_fold(text.clone(), |text, (from, to)| swap(&text, from, to))?;
        let both = [("as it stands", text), ("5 s to read, no wait_seconds", &impatient)];
        let mut findings = Findings::of(name.clone());
        for (check, text) in both {
            findings.checks.push((check.to_owned(), run(interpreter, file, text, &start()?)?));
        }
        Ok(findings)
    }
}

fn run(interpreter: &Path, file: &Path, text: &str, server: &Instance) -> Result<Option<String>> {
    let key = server.keys.first().context("the program shows a key")?;
    let text = swap(text, "http://127.0.0.1:8080/mcp", &server.url)?;
    let text = swap(&text, "KEY_ID", &key.id)?;
    let text = swap(&text, "SECRET", &key.secret)?;
    fs::write(file, text)?;
    let output = Command::new(interpreter).arg(file).output()?;
    let [said, log] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    let well = output.status.success() && said.trim() == ENDS_AS;
    Ok((!well).then(|| format!("it ended with {} and said {said}{log}", output.status)))
}

fn swap(text: &str, from: &str, to: &str) -> Result<String> {
    ensure!(text.contains(from), "the sample of {PAGE} does not contain {from:?}:\n{text}");
    Ok(text.replacen(from, to, 1))
}
