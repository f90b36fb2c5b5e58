//! `cargo xtask browse`: the screen page and the console in Chromium, against the programs as users
//! start them.
//!
//! `tests/browser/screen.mjs` and `console.mjs` open and measure the pages. A lock file next to
//! them pins their packages.

use crate::cargo::{cargo_of_tests, step};
use crate::node;
use anyhow::{Context, Result, bail};
use clap::Args;
use driver::Start;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tokio::runtime::Runtime;

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

/// Looks at all pages.
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
    let runtime = Runtime::new()?;
    let server = runtime.block_on(Start::new(&program, data.clone()).flags(&["--demo"]).ready())?;
    let key = server.keys.first().context("the demo has keys")?;
    let folder = data.join("data");
    let revoke = format!("{} --data {} key revoke {}", program.display(), folder.display(), key.id);
    let url = server.url.trim_end_matches("/mcp");
    let mut script = Command::new("node");
    script.current_dir(&home).args(["screen.mjs", url, &key.id, &key.secret, "--revoke", &revoke]);
    let mut passed = look(script, *short, pictures.as_deref())?;
    let operator = format!("{} --data {}", program.display(), folder.display());
    let issue = format!("{operator} key create demo --json > key.json");
    // A write to the first phone ends soon, one to the other as a silent failure.
    let phone = if *short { "phone-0000001" } else { "phone-0000013" };
    let call = format!(
        "(umask 077; {issue}) && CLOUDPHONE_KEY_FILE=key.json {} call set_proxy device_id={phone} scheme=http host=203.0.113.7 port=3128 \
         --url {}",
        program.display(),
        server.url
    );
    let mut script = Command::new("node");
    script.current_dir(&home).args([
        "console.mjs",
        &operator,
        "/fleet/device",
        "/fleet/device/phone-0000013",
        "--call",
        &call,
    ]);
    passed += look(script, *short, pictures.as_deref())?;
    drop(server);
    if !short {
        passed += look_at_shop(&runtime, (built, &home), pictures.as_deref())?;
    }
    Ok(passed)
}

/// Looks at the console of a service that adds nothing to it.
fn look_at_shop(runtime: &Runtime, (built, home): (&Path, &Path), pictures: Option<&Path>) -> Result<u64> {
    let program = built.join("print-shop");
    let data = home.join("run/shop");
    fs::create_dir_all(&data).with_context(|| format!("cannot create {}", data.display()))?;
    let server = runtime.block_on(Start::new(&program, data).flags(&["--demo"]).ready())?;
    let operator = format!("{} --data {}", program.display(), server.operator.data.display());
    let mut script = Command::new("node");
    script.current_dir(home).args([
        "console.mjs",
        &operator,
        "/fleet/printer",
        "/fleet/tray",
        "/act/tray/assign?app=demo",
    ]);
    look(script, false, pictures.map(|folder| folder.join("shop")).as_deref())
}

/// Returns the number of checks, which all passed.
fn look(mut script: Command, short: bool, pictures: Option<&Path>) -> Result<u64> {
    script.args(short.then_some("--short"));
    if let Some(pictures) = pictures {
        fs::create_dir_all(pictures).with_context(|| format!("cannot create {}", pictures.display()))?;
        script.arg("--pictures").arg(std::path::absolute(pictures)?);
    }
    let output = script.stderr(Stdio::inherit()).output().context("cannot run node: install Node.js 20 or later")?;
    let lines = String::from_utf8_lossy(&output.stdout);
    println!("{}", lines.trim_end());
    let passed = lines.lines().filter(|line| line.starts_with("ok ")).count();
    if !output.status.success() || passed == 0 {
        bail!("the page does not do what it should; the lines above say what");
    }
    Ok(passed as u64)
}
