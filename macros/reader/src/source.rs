//! Finds and reads the files of a contract. Of their content, it only uses the list of tool files.

use crate::names;
use crate::raw::At;
use crate::report::{Place, Report, Source};
use crate::rules::Rule;
use std::fs;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toolwarrant_common::nearest;

/// The files of `tools/` follow these positions, in the order in which they are listed.
pub(crate) const SERVICE: usize = 0;
pub(crate) const ERRORS: usize = 1;
pub(crate) const TYPES: usize = 2;
pub(crate) const RESERVED: usize = 3;
pub(crate) const DEFAULTS: usize = 4;
pub(crate) const FIRST_TOOLS: usize = 5;

const FILES: [(&str, bool); 4] =
    [("service.toml", true), ("errors.toml", false), ("types.toml", true), ("reserved.toml", false)];

pub const RELEASED: &str = "released.toml";

pub const ACCEPTED: &str = "accepted.toml";

const FRAMEWORK: &str = include_str!("defaults.toml");

/// Adds the framework's defaults also. Makes a file that is missing or not UTF-8 a problem and an
/// empty source.
pub(crate) fn read(dir: &Path, report: &mut Report) -> Vec<Source> {
    let mut sources = Vec::new();
    for (name, required) in FILES {
        let path = dir.join(name);
        if !required && matches!(path.try_exists(), Ok(false)) {
            sources.push(Source { shown: display_path(dir, name), path: None, text: String::new() });
        } else {
            add(dir, path, &mut sources, report);
        }
    }
    for name in present(dir).into_iter().map(|name| name + ".toml") {
        if FILES.iter().all(|(known, _)| *known != name) && ![RELEASED, ACCEPTED].contains(&name.as_str()) {
            let absent = FILES.iter().map(|(known, _)| *known).filter(|known| !dir.join(known).exists());
            let meant = nearest(&name, absent);
            let help = meant.map_or("remove it; tools are in the folder `tools`".to_owned(), |meant| {
                format!("did you mean `{meant}`?")
            });
            let message = format!("the file `{}` is not read", display_path(dir, &name));
            report.add(Rule::UnlistedFile, in_service(0..0), message, Some(help));
        }
    }
    sources.push(Source { shown: "the framework's defaults".to_owned(), path: None, text: FRAMEWORK.to_owned() });
    sources
}

/// Sorts by name if the list could not be read.
pub(crate) fn tools(dir: &Path, listed: Option<&At<Vec<At<String>>>>, sources: &mut Vec<Source>, report: &mut Report) {
    let folder = dir.join("tools");
    let present = present(&folder);
    let Some(listed) = listed else {
        present.iter().for_each(|name| add(dir, folder.join(format!("{name}.toml")), sources, report));
        return;
    };
    let mut known: Vec<&str> = Vec::new();
    for name in listed.iter() {
        let place = in_service(name.span());
        let is_there = present.iter().any(|there| *there == **name);
        let unlisted = present.iter().filter(|there| !listed.iter().any(|name| name.as_str() == there.as_str()));
        let meant = match is_there {
            true => Some(name.as_str()),
            false => nearest(name, unlisted.map(String::as_str)),
        };
        if known.contains(&name.as_str()) {
            report.add(Rule::DuplicateName, place, format!("`{}` stands here twice", **name), None);
            continue;
        }
        let kept = names::refuse_for_windows(name);
        if !names::is_snake(name) || names::is_keyword(name) || kept.is_some() {
            let spelt = "a file of tools/ is named in lower_snake_case, as the file of its handlers is";
            let help = kept.or_else(|| Some(spelt.to_owned()));
            report.add(Rule::Name, place, format!("`{}` is no usable name of a file", **name), help);
            known.push(name);
            continue;
        }
        if !is_there {
            let help = match meant {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => {
                    let others = listed.iter().map(|name| name.as_str()).filter(|other| *other != name.as_str());
                    format!("write the file, or leave it out: `{}`", line(others))
                }
            };
            let message = format!("there is no file `{}`", display_path(dir, &format!("tools/{}.toml", **name)));
            report.add(Rule::MissingFile, place, message, Some(help));
        }
        known.push(name);
        if let Some(meant) = meant {
            known.push(meant);
            add(dir, folder.join(format!("{meant}.toml")), sources, report);
        }
    }
    let forgotten: Vec<&str> = present.iter().map(String::as_str).filter(|name| !known.contains(name)).collect();
    for name in &forgotten {
        let all = listed.iter().map(|name| name.as_str()).chain(forgotten.iter().copied());
        let help = Some(format!("write `{}`, or remove the file", line(all)));
        let message = format!("the file `{}` is not listed", display_path(dir, &format!("tools/{name}.toml")));
        report.add(Rule::UnlistedFile, in_service(listed.span()), message, help);
    }
}

fn line<'a>(names: impl Iterator<Item = &'a str>) -> String {
    format!("tools = [{}]", names.map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", "))
}

fn present(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let tools = entries.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    let mut names: Vec<String> =
        tools.filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned())).collect();
    names.sort();
    names
}

fn add(dir: &Path, path: PathBuf, sources: &mut Vec<Source>, report: &mut Report) {
    let inner = path.strip_prefix(dir).unwrap_or(&path).to_string_lossy().replace('\\', "/");
    let shown = display_path(dir, &inner);
    let read = fs::read_to_string(&path);
    let path = (!matches!(&read, Err(error) if error.kind() == ErrorKind::NotFound)).then_some(path);
    let text = read.unwrap_or_else(|error| {
        let required: Vec<_> = FILES.iter().filter(|(_, required)| *required).map(|(name, _)| *name).collect();
        let help = Some(format!("every contract has the files {}", required.join(" and ")));
        let place = Place { file: sources.len(), span: 0..0 };
        report.add(Rule::Unreadable, place, format!("cannot read `{shown}`: {error}"), help);
        String::new()
    });
    sources.push(Source { shown, path, text });
}

fn display_path(dir: &Path, inner: &str) -> String {
    let base = dir.file_name().map_or_else(|| "spec".into(), |name| name.to_string_lossy());
    format!("{base}/{inner}")
}

fn in_service(span: Range<usize>) -> Place {
    Place { file: SERVICE, span }
}
