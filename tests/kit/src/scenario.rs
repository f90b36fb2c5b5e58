//! A scenario: a text whose lines act on a running program. Its transcript shows each line with
//! what the program answers, and is the same in every run.
//!
//! | line | what it does |
//! |---|---|
//! | `operator> app list` | runs a command; an exit code other than 0 is shown |
//! | `client> get_device {"device_id": ..}` | calls a tool with the first key of the program |
//! | `client cpk_1> ...` | calls it with a key that a command before has shown |
//! | `get> /readyz` | reads a page of the monitor |
//! | `program> stop` | stops the program; `kill` kills it |
//!
//! Any other line is a note. Ids and secrets have a number in the order in which they appear, and
//! a line names them so. Times, the folder of the data and several blanks are made equal.

use crate::mcp::{KeyPair, outcome, rpc};
use crate::program::Instance;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Returns the transcript.
pub async fn play(instance: &mut Instance, scenario: &str) -> Result<String> {
    let (mut names, mut transcript) = (AliasTable::default(), String::new());
    let folder = instance.operator.data.display().to_string();
    for line in scenario.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let said = match line.split_once("> ") {
            None => None,
            Some((who, what)) => {
                let said = act(instance, &names, who, &names.real(what)).await.with_context(|| line.to_owned())?;
                Some(names.steady(&said.replace(&folder, "DATA")))
            }
        };
        transcript += &format!("{line}\n{}\n", said.unwrap_or_default());
    }
    Ok(transcript)
}

async fn act(instance: &mut Instance, names: &AliasTable, who: &str, what: &str) -> Result<String> {
    let (who, key) = who.split_once(' ').map_or((who, None), |(who, key)| (who, Some(key)));
    Ok(match who {
        "operator" => match instance.operator.run(what.split(' ')).await? {
            (0, said) => said,
            (code, said) => format!("{said}\nexit {code}\n"),
        },
        "client" => {
            let key = key.map_or_else(|| instance.keys.first().cloned(), |key| names.key(key)).context("a key")?;
            let (tool, arguments) = what.split_once(' ').unwrap_or((what, "{}"));
            let arguments: Value = serde_json::from_str(arguments)?;
            let call = json!({"name": tool, "arguments": arguments});
            let answer = rpc(instance.address, &key, "tools/call", &call).await?;
            match outcome(&answer) {
                Ok(Ok(result)) => format!("{result:#}\n"),
                Ok(Err(failure)) => format!("refused: {failure:#}\n"),
                Err(_) => format!("refused: {:#}\n", answer["error"]),
            }
        }
        "get" => {
            let answer = instance.watch(what).await?;
            format!("{} {}\n", answer.status, answer.body)
        }
        "program" if what == "stop" => instance.stop().await.map(|(status, last)| format!("{status}\n{last}"))?,
        "program" if what == "kill" => instance.kill().await.map(|()| String::new())?,
        other => bail!("a scenario has no `{other}`"),
    })
}

/// Values that differ from run to run, by what stands before their digits.
#[derive(Default)]
struct AliasTable {
    known: BTreeMap<String, Vec<String>>,
    /// In the order in which they were shown.
    keys: Vec<KeyPair>,
}

const PREFIXES: [&str; 5] = ["act", "app", "cpk", "cps", "task"];

/// Shorter digits are those of a scenario.
const LENGTH_MIN: usize = 16;

impl AliasTable {
    fn real(&self, line: &str) -> String {
        words(line, |word| {
            let (prefix, number) = word.rsplit_once('_')?;
            Some(self.known.get(prefix)?.get(number.parse::<usize>().ok()?.checked_sub(1)?)?.clone())
        })
    }

    fn key(&self, id: &str) -> Option<KeyPair> {
        let id = self.real(id);
        self.keys.iter().find(|key| key.id == id).cloned()
    }

    fn steady(&mut self, text: &str) -> String {
        let mut shown = [None, None];
        let lines = text.lines().map(|line| {
            let words = words(line, |word| {
                if word.len() >= 20 && word.starts_with("20") && word.ends_with('Z') {
                    return Some("TIME".to_owned());
                }
                let (prefix, rest) = word.split_once('_')?;
                let is_one = PREFIXES.contains(&prefix) && rest.len() >= LENGTH_MIN;
                is_one.then(|| {
                    shown = match prefix {
                        "cpk" => [Some(word.to_owned()), shown[1].take()],
                        "cps" => [shown[0].take(), Some(word.to_owned())],
                        _ => std::mem::take(&mut shown),
                    };
                    let known = self.known.entry(prefix.to_owned()).or_default();
                    let place = known.iter().position(|known| known == word).unwrap_or_else(|| {
                        known.push(word.to_owned());
                        known.len() - 1
                    });
                    format!("{prefix}_{}", place + 1)
                })
            });
            let indent = line.len() - line.trim_start().len();
            format!("{}{}\n", &line[..indent], words.split_whitespace().collect::<Vec<_>>().join(" "))
        });
        let text = lines.collect();
        if let [Some(id), Some(secret)] = shown {
            self.keys.push(KeyPair { id, secret });
        }
        text
    }
}

/// Replaces words of letters, digits and `_-:.`.
fn words(line: &str, mut replace: impl FnMut(&str) -> Option<String>) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-:.".contains(c);
    let (mut out, mut rest) = (String::new(), line);
    while let Some(begin) = rest.find(is_part) {
        out += &rest[..begin];
        let length = rest[begin..].find(|c| !is_part(c)).unwrap_or(rest.len() - begin);
        // A sentence may end here.
        let length = rest[begin..begin + length].trim_end_matches(['.', ':']).len().max(1);
        let word = &rest[begin..begin + length];
        out += &replace(word).unwrap_or_else(|| word.to_owned());
        rest = &rest[begin + length..];
    }
    out + rest
}
