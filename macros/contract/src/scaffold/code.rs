//! The code of a new tool.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use toolwarrant_reader::model::{Contract, ToolSpec};
use toolwarrant_reader::pascal;

struct Source {
    path: PathBuf,
    text: String,
}

struct Impl<'a> {
    source: &'a Source,
    name: String,
    handler: &'a str,
    end: usize,
}

pub(super) fn draft(
    contract: &Contract,
    package: &Path,
    name: &str,
    drafts: &mut BTreeMap<PathBuf, String>,
) -> Result<(), String> {
    let tools = contract.domains.iter().flat_map(|domain| domain.tools.iter().map(move |tool| (domain, tool)));
    let found = tools.into_iter().find(|(_, tool)| tool.name == name);
    let (domain, tool) = found.ok_or_else(|| format!("the contract has no tool `{name}`"))?;
    let own = trait_of(&domain.name);
    let folder = package.join("src");
    let sources = sources(&folder);
    let names = [own.clone()].into_iter().chain(contract.domains.iter().map(|domain| trait_of(&domain.name)));
    let mut found = names.filter_map(|name| sources.iter().find_map(|source| find_impl(source, &name)));
    let Some(found) = found.next() else {
        return Err(format!("{} has no `impl {own} for ...` and no other impl of handlers", folder.display()));
    };
    let (path, text) = (found.source.path.clone(), handler(&found, &own, tool)?);
    drafts.insert(path, text);
    drafts.extend(test(contract, tool, &self::sources(&package.join("tests"))));
    Ok(())
}

fn trait_of(domain: &str) -> String {
    pascal(domain) + "Tools"
}

fn find_impl<'a>(source: &'a Source, name: &str) -> Option<Impl<'a>> {
    let (text, head) = (&source.text, format!("{name} for "));
    text.match_indices(&head).find_map(|(at, _)| {
        let before = text[..at].lines().next_back().filter(|_| !text[..at].ends_with('\n'))?;
        let line = text[at + head.len()..].lines().next()?;
        let handler = line.strip_suffix(" {").or(line.strip_suffix(" {}"))?;
        let begin = at + head.len() + line.len();
        let end = if line.ends_with('}') { begin - 1 } else { begin + text[begin..].find("\n}")? + 1 };
        let is_impl = before.starts_with("impl") && before.ends_with([' ', ':']);
        is_impl.then(|| Impl { source, name: name.to_owned(), handler, end })
    })
}

fn handler(found: &Impl<'_>, own: &str, tool: &ToolSpec) -> Result<String, String> {
    let Impl { source: Source { path, text }, name, handler, end } = found;
    let camel = pascal(&tool.name);
    let mut of_contract = vec![own.to_owned(), format!("{camel}Args"), format!("{camel}Error")];
    let mut of_framework = vec!["Call".to_owned()];
    let target = tool.target.as_ref().map(|target| {
        let id = target.resource.id.name.clone();
        of_framework.extend(["Resource", "Target"].map(str::to_owned));
        of_contract.push(id.clone());
        format!("_: &Target<<Self as Resource<{id}>>::View>,\n        ")
    });
    let (args, result, body) = if tool.task().is_some() {
        of_contract.push("Command".to_owned());
        ("args", "Command".to_owned(), format!("Ok(Command::{camel}(args))"))
    } else {
        of_framework.push("Reply".to_owned());
        of_contract.push(tool.result.name.clone());
        let why = format!("{camel}Error::Internal(\"{} is not written yet\".into())", tool.name);
        ("_", format!("Reply<{}>", tool.result.name), format!("Err({why})"))
    };
    let method = format!(
        "    async fn {}(\n        &self,\n        _: &Call<'_>,\n        {}{args}: {camel}Args,\n    ) -> Result<{result}, {camel}Error> {{\n        {body}\n    }}\n",
        tool.name,
        target.unwrap_or_default(),
    );
    let (at, block) = match name == own {
        true => (*end, format!("\n{method}")),
        false => (*end + 1, format!("\n\nimpl {own} for {handler} {{\n{method}}}")),
    };
    let (before, after) = text.split_at(at);
    let uses: Vec<&str> = text.split("\nuse ").skip(1).filter_map(|rest| rest.split(';').next()).collect();
    let imports = |name: &str| uses.iter().any(|line| words(line).any(|word| word == name));
    let named = uses.iter().find(|line| words(line).any(|word| word == name));
    if named.is_none() {
        // A glob brings every name of the contract.
        of_contract.clear();
    }
    let Some(of_trait) = named.or_else(|| uses.iter().find(|line| line.ends_with("::*"))) else {
        return Err(format!("{} must import `{name}`, so that its other names can be imported", path.display()));
    };
    let module = of_trait.split("::{").next().unwrap_or_default().trim_end_matches(&format!("::{name}"));
    let mut added = String::new();
    for (module, mut names) in [(module, of_contract), ("toolwarrant::handler", of_framework)] {
        names.retain(|name| !imports(name));
        names.sort();
        added += &match &names[..] {
            [] => String::new(),
            [name] => format!("\nuse {module}::{name};"),
            names => format!("\nuse {module}::{{{}}};", names.join(", ")),
        };
    }
    let written = [before, &block, after].concat().replacen("\nuse ", &format!("{added}\nuse "), 1);
    // Code with another layout keeps it.
    let is_formatted = format_code(path, text).as_ref() == Some(text);
    Ok(if is_formatted { format_code(path, &written).unwrap_or(written) } else { written })
}

fn test(contract: &Contract, tool: &ToolSpec, sources: &[Source]) -> Option<(PathBuf, String)> {
    let calls = |line: &str| {
        let (receiver, rest) = line.split_once(".call(\"")?;
        let (name, arguments) = rest.split_once("\", ")?;
        let receiver = words(receiver).last().filter(|_| arguments.starts_with("json!("))?;
        contract.tools().any(|other| other.name == name).then(|| format!("let {receiver} = "))
    };
    let found = sources.iter().find_map(|source| {
        let binding = source.text.lines().find_map(calls)?;
        let begin =
            source.text.lines().map(str::trim).find(|line| line.starts_with(&binding) && line.ends_with(';'))?;
        Some((source, begin, words(&binding).nth(1)?.to_owned()))
    });
    let (Source { path, text }, begin, receiver) = found?;
    let arguments = tool.examples.first().map_or_else(Default::default, |example| example.arguments.clone());
    let (name, arguments) = (&tool.name, serde_json::Value::from(arguments));
    let test = format!(
        "#[tokio::test]\nasync fn {name}_answers() {{\n    {begin}\n    let answer = {receiver}.call(\"{name}\", json!({arguments})).await;\n    assert!(answer.is_ok(), \"{{answer:?}}\");\n}}\n"
    );
    Some((path.clone(), format!("{text}\n{test}")))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

fn format_code(path: &Path, code: &str) -> Option<String> {
    let mut rustfmt = Command::new("rustfmt");
    rustfmt.args(["--edition", "2024"]).current_dir(path.parent()?);
    let mut child = rustfmt.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    child.stdin.take()?.write_all(code.as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).ok()).flatten()
}

fn sources(folder: &Path) -> Vec<Source> {
    let mut paths: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let of = |path: PathBuf| match fs::read_to_string(&path) {
        Ok(text) if path.extension().is_some_and(|ending| ending == "rs") => vec![Source { path, text }],
        _ => sources(&path),
    };
    paths.into_iter().flat_map(of).collect()
}
