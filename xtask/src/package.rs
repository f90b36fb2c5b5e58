//! `cargo xtask package`: a tarball, a Debian package, a bundle for hosts, bills of materials and
//! their sums in `dist`.
//!
//! Two runs on one commit give the same bytes, in whatever folders: the compilers do not learn the
//! paths of this machine, and every date is that of the commit. Only fetching uses the network, and
//! installing the two tools, if the right versions are not on PATH.

use crate::cargo::{cargo, must, step};
use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The first one is also the name of the package.
const PROGRAMS: [&str; 2] = ["cloudphone", "cloudphone-bridge"];

const DEB: Tool = Tool { subcommand: "deb", version: "3.8.0" };

const SBOM: Tool = Tool { subcommand: "cyclonedx", version: "0.5.9" };

struct Tool {
    subcommand: &'static str,
    version: &'static str,
}

pub(crate) fn run(root: &Path) -> Result<()> {
    let git = |arguments: &[&str]| must(Command::new("git").args(arguments).current_dir(root));
    ensure!(git(&["status", "--porcelain"])?.is_empty(), "a package belongs to a commit; commit the changes first");
    let date = git(&["log", "-1", "--format=%ct"])?.trim().to_owned();
    let (dist, build) = (root.join("dist"), root.join("target/package"));
    let files = dist.join("files");
    let _ = fs::remove_dir_all(&dist);
    let (deb, sbom) = (DEB.find(root)?, SBOM.find(root)?);

    step(cargo(root), &["fetch", "--locked"])?;
    let mut command = cargo(root);
    command.envs(map_paths(root)?).arg("--offline").env("SOURCE_DATE_EPOCH", &date).env("CARGO_TARGET_DIR", &build);
    let of_package = PROGRAMS.map(|program| ["--package", program]).concat();
    step(command, &[&["build", "--locked", "--release"], &of_package[..]].concat())?;
    let programs = build.join("release");
    must(Command::new(programs.join(PROGRAMS[0])).arg("files").arg(&files))?;
    for program in PROGRAMS {
        fs::copy(programs.join(program), files.join(program)).context(program)?;
    }
    fs::copy(root.join("LICENSE"), files.join("LICENSE"))?;

    let target = must(Command::new("rustc").args(["--print", "host-tuple"]).current_dir(root))?;
    let release = format!("{}-{}", env!("CARGO_PKG_VERSION"), target.trim());
    let name = format!("{}-{release}", PROGRAMS[0]);
    pack(&dist, &name, &date)?;
    bundle(root, &dist, &name)?;
    let mut command = Command::new(deb);
    command.args(["--no-build", "--no-strip", "--offline", "--locked", "--package", PROGRAMS[0], "--output"]);
    must(command.arg(&dist).current_dir(root).env("SOURCE_DATE_EPOCH", &date))?;
    describe(&sbom, root, &release, &date)?;
    println!("{}", sum(&dist)?.trim_end());
    Ok(())
}

/// Returns the variables that keep the paths of this machine out of the programs.
fn map_paths(root: &Path) -> Result<[(&'static str, String); 2]> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(env::home_dir()?.join(".cargo"))).context("there is no home of cargo")?;
    let maps = [format!("{}=.", root.display()), format!("{}=cargo", home.display())];
    let flags = maps.each_ref().map(|map| format!("--remap-path-prefix={map}"));
    let of_c = maps.each_ref().map(|map| format!("-ffile-prefix-map={map}"));
    Ok([("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f")), ("CFLAGS", of_c.join(" "))])
}

/// The folder has the name of the package, so that two versions unpack next to each other.
fn pack(dist: &Path, name: &str, date: &str) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.args(["--create", "--format=gnu", "--sort=name", "--mode=u=rwX,go=rX"]);
    tar.args(["--owner=0", "--group=0", "--numeric-owner"]);
    tar.arg(format!("--mtime=@{date}")).arg(format!("--transform=s,^files,{name},"));
    tar.arg("--use-compress-program=gzip -9n").arg(format!("--file={name}.tar.gz")).arg("files");
    must(tar.current_dir(dist)).map(drop)
}

/// Makes the file that a host installs on one click, and the entry for the registry of servers.
fn bundle(root: &Path, dist: &Path, name: &str) -> Result<()> {
    let package: toml::Table = fs::read_to_string(root.join("server/cloudphone/Cargo.toml"))?.parse()?;
    let [program, version, repository] = [PROGRAMS[0], env!("CARGO_PKG_VERSION"), env!("CARGO_PKG_REPOSITORY")];
    let manifest = json!({
        "manifest_version": "0.3",
        "name": program,
        "version": version,
        "description": package["package"]["description"],
        "author": {"name": package["package"]["metadata"]["deb"]["maintainer"]},
        "repository": {"type": "git", "url": repository},
        "license": env!("CARGO_PKG_LICENSE"),
        "server": {
            "type": "binary",
            "entry_point": program,
            "mcp_config": {"command": format!("${{__dirname}}/{program}"), "args": ["stdio"]},
        },
        "compatibility": {"platforms": ["linux"]},
    });
    let file = format!("{name}.mcpb");
    // Each file gets the local time of the commit.
    let mut git = Command::new("git");
    git.args(["archive", "--format=zip", "-9"]).env("TZ", "UTC").current_dir(root);
    git.arg(format!("--output={}", dist.join(&file).display()));
    git.arg(format!("--add-file={}", dist.join("files").join(program).display()));
    git.arg(format!("--add-virtual-file=manifest.json:{manifest:#}")).args(["HEAD", "LICENSE"]);
    must(&mut git)?;
    let sum = must(Command::new("sha256sum").arg(&file).current_dir(dist))?;
    let entry = json!({
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": repository.replace("https://github.com/", "io.github."),
        "description": package["package"]["description"],
        "repository": {"url": repository, "source": "github"},
        "version": version,
        "packages": [{
            "registryType": "mcpb",
            "identifier": format!("{repository}/releases/download/v{version}/{file}"),
            "fileSha256": sum.split_once(' ').map(|(sum, _)| sum),
            "transport": {"type": "stdio"},
        }],
    });
    Ok(fs::write(dist.join(format!("{name}.server.json")), format!("{entry:#}\n"))?)
}

/// The tool writes next to each manifest of the workspace, with absolute paths: so it gets a copy.
fn describe(tool: &Path, root: &Path, release: &str, date: &str) -> Result<()> {
    let copy = root.join("target/package/source");
    let _ = fs::remove_dir_all(&copy);
    let path = copy.display().to_string();
    let prefix = format!("--prefix={path}/");
    must(Command::new("git").args(["checkout-index", "--all", &prefix]).current_dir(root))?;
    let arguments = ["cyclonedx", "--quiet", "--format", "json", "--spec-version", "1.5", "--describe", "binaries"];
    let mut command = Command::new(tool);
    command.args(arguments).current_dir(&copy).env("SOURCE_DATE_EPOCH", date).env("CARGO_NET_OFFLINE", "true");
    must(&mut command)?;
    for (program, folder) in PROGRAMS.into_iter().zip(["", "bridge"]) {
        let made = copy.join("server/cloudphone").join(folder).join(format!("{program}_bin.cdx.json"));
        let text = fs::read_to_string(&made).with_context(|| made.display().to_string())?;
        fs::write(root.join(format!("dist/{program}-{release}.cdx.json")), text.replace(&path, ""))?;
    }
    Ok(fs::remove_dir_all(copy)?)
}

fn sum(dist: &Path) -> Result<String> {
    let entries = fs::read_dir(dist)?.collect::<Result<Vec<_>, _>>()?;
    let mut names: Vec<_> =
        entries.iter().filter(|entry| entry.path().is_file()).map(fs::DirEntry::file_name).collect();
    names.sort();
    let sums = must(Command::new("sha256sum").args(names).current_dir(dist))?;
    fs::write(dist.join("SHA256SUMS"), &sums)?;
    Ok(sums)
}

impl Tool {
    /// Prefers the one on PATH, and installs it if there is none of this version.
    fn find(&self, root: &Path) -> Result<PathBuf> {
        let Self { subcommand, version } = self;
        let (name, folder) = (format!("cargo-{subcommand}"), root.join("target/tools"));
        let is_right = |path: &PathBuf| {
            let said = Command::new(path).args([subcommand, "--version"]).output();
            said.is_ok_and(|said| said.stdout.trim_ascii().ends_with(version.as_bytes()))
        };
        let installed = folder.join("bin").join(&name);
        if let Some(found) = [PathBuf::from(&name), installed.clone()].into_iter().find(is_right) {
            return Ok(found);
        }
        let folder = folder.display().to_string();
        step(cargo(root), &["install", "--locked", "--root", &folder, "--version", version, &name])?;
        Ok(installed)
    }
}
