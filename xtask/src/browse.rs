//! `cargo xtask browse`: the screen page in Chromium, against the program as users start it.
//!
//! `tests/browser/screen.mjs` opens and measures the page. A lock file next to it pins its
//! packages.

use crate::cargo::{cargo_of_tests, step};
use crate::node;
use anyhow::{Context, Result, bail};
use clap::Args;
use driver::Start;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(Args)]
pub(crate) struct Browsing {
    /// Only what takes at most a minute
    #[arg(long)]
    short: bool,

    /// Write pictures of the page to this folder
    #[arg(long, value_name = "DIR")]
    pictures: Option<PathBuf>,
}

impl Browsing {
    pub(crate) fn short() -> Self {
        Self { short: true, pictures: None }
    }
}

/// Debian's package.
pub(crate) const CHROMIUM: &str = "/usr/bin/chromium";

/// Returns the number of checks, which all passed.
pub(crate) fn run(root: &Path, Browsing { short, pictures }: &Browsing) -> Result<u64> {
    step(cargo_of_tests(root), &["test", "--workspace", "--locked", "--no-run"])?;
    let this = std::env::current_exe()?;
    let built = this.parent().context("this program must be in a folder")?;
    let home = built.with_file_name("browser");
    node::install(&root.join("tests/browser"), &home)?;
    let data = home.join("run");
    let _ = fs::remove_dir_all(&data);
    fs::create_dir_all(&data).with_context(|| format!("cannot create {}", data.display()))?;
    let program = built.join("cloudphone");
    let runtime = tokio::runtime::Runtime::new()?;
    let server = runtime.block_on(Start::new(&program, data.clone()).flags(&["--demo"]).ready())?;
    let key = server.keys.first().context("the demo has keys")?;
    let folder = data.join("data");
    let revoke = format!("{} --data {} key revoke {}", program.display(), folder.display(), key.id);
    let url = server.url.trim_end_matches("/mcp");
    let mut script = Command::new("node");
    script.current_dir(&home).args(["screen.mjs", url, &key.id, &key.secret, "--revoke", &revoke]);
    script.args(short.then_some("--short"));
    if let Some(pictures) = pictures {
        script.arg("--pictures").arg(std::path::absolute(pictures)?);
    }
    let output = script.stderr(Stdio::inherit()).output().context("cannot run node: install Node.js 20 or later")?;
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{}", said.trim_end());
    let passed = said.lines().filter(|line| line.starts_with("ok ")).count();
    if !output.status.success() || passed == 0 {
        bail!("the page does not do what it should; the lines above say what");
    }
    Ok(passed as u64)
}
