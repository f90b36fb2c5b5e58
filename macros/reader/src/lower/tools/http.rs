//! Lowers HTTP twins. The method must fit the effect, each argument its place, and every path must
//! lead to one tool.

use super::lowering::{Arguments, Lowering};
use crate::model::{EffectSpec, Field, Http, Type};
use crate::names::is_wire;
use crate::raw::At;
use crate::rules::Rule;
use toolwarrant_common::suggestion;

#[derive(Default)]
pub(super) struct Routes(Vec<(String, Http)>);

impl Routes {
    /// Returns a message and help if a request could match this twin and an earlier one.
    pub(super) fn add(&mut self, tool: &str, raw: &str) -> Option<(String, Option<String>)> {
        let http = read(raw)?;
        let found = self.0.iter().find_map(|(other, known)| clash(&http, other, known));
        self.0.push((tool.to_owned(), http));
        found
    }
}

/// Allows two paths if one of them has the words, which win over arguments, in every segment where
/// they differ.
fn clash(http: &Http, other: &str, known: &Http) -> Option<(String, Option<String>)> {
    let [mine, theirs] = [http, known].map(|http| http.path.split('/').collect::<Vec<_>>());
    let pairs: Vec<_> = mine.iter().zip(&theirs).map(|(mine, theirs)| (*mine, *theirs)).collect();
    let apart = |(mine, theirs): &(&str, &str)| !is_argument(mine) && !is_argument(theirs) && mine != theirs;
    if mine.len() != theirs.len() || pairs.iter().any(apart) {
        return None;
    }
    let wins = |(mine, theirs): &(&str, &str)| !is_argument(mine) && is_argument(theirs);
    let loses = |(mine, theirs): &(&str, &str)| is_argument(mine) && !is_argument(theirs);
    match (pairs.iter().any(wins), pairs.iter().any(loses)) {
        (false, false) if http.method == known.method => Some((format!("`{other}` has this HTTP twin already"), None)),
        (false, false) => {
            let (mine, theirs) = pairs.iter().find(|(mine, theirs)| mine != theirs)?;
            let message = format!("`{mine}` stands where the twin of `{other}` has `{theirs}`");
            Some((message, Some("name the argument of both tools alike: it is the same path".to_owned())))
        }
        (true, true) => {
            let path = pairs.iter().map(|(mine, theirs)| if is_argument(mine) { *theirs } else { *mine });
            let path = path.collect::<Vec<_>>().join("/");
            let help = "give the two paths different words in a place where both have one".to_owned();
            Some((format!("`{path}` fits this twin and that of `{other}`"), Some(help)))
        }
        (true, false) | (false, true) => None,
    }
}

impl Lowering<'_> {
    pub(super) fn http(&mut self, raw: &At<String>, effect: Option<&EffectSpec>, args: &Arguments<'_>) -> Option<Http> {
        let Some(http) = read(raw) else {
            let help = "write it as `PUT /v1/things/{thing_id}`, with words of a-z, 0-9, `_` and `-`".to_owned();
            self.add(Rule::Http, raw, "this is no HTTP twin", Some(help));
            return None;
        };
        let mut before: Vec<&str> = Vec::new();
        for parameter in http.parameters() {
            if before.contains(&parameter) {
                let help = Some("take one of them out".to_owned());
                self.add(Rule::Http, raw, format!("`{{{parameter}}}` stands in the path twice"), help);
            } else {
                self.in_path(raw, parameter, args);
            }
            before.push(parameter);
        }
        let free = args.lowered.iter().filter(|field| !before.contains(&field.name.as_str()));
        let unfit: Vec<_> = free.filter_map(|field| Some((field, unfit_for_query(field)?))).collect();
        let Some((name, methods)) = effect.map(|effect| methods(effect, !unfit.is_empty())) else { return Some(http) };
        let is_plain_read = name == "read" && http.method == "GET";
        if !methods.contains(&http.method.as_str()) && !is_plain_read {
            let help = Some(format!("use {}", methods.join(" or ")));
            self.add(Rule::Http, raw, format!("{} does not fit the effect `{name}`", http.method), help);
        } else if !http.has_body() {
            let with_body: Vec<_> = methods.iter().filter(|method| **method != "DELETE").copied().collect();
            for (field, what) in unfit {
                let help = format!("use {}, whose arguments stand in the body", with_body.join(" or "));
                self.add(Rule::Http, raw, format!("`{}` {what}", field.name), Some(help));
            }
        }
        Some(http)
    }

    fn in_path(&mut self, raw: &At<String>, parameter: &str, args: &Arguments<'_>) {
        let (what, help) = match args.find(parameter) {
            Err(()) => ("is no argument of this tool", suggestion(parameter, args.names.iter().copied())),
            Ok(Some(field)) if field.optional => {
                ("stands in the path but is optional", "require it, or take it out of the path".to_owned())
            }
            Ok(Some(field)) if field.ty.needs_body() => {
                ("stands in the path but is a text or has parts", "take it out of the path".to_owned())
            }
            Ok(Some(field)) if field.secret => (
                "is secret, and paths are written to logs on their way",
                "take it out of the path; the body of a PUT or POST is written to none".to_owned(),
            ),
            Ok(_) => return,
        };
        self.add(Rule::Http, raw, format!("`{{{parameter}}}` {what}"), Some(help));
    }
}

fn unfit_for_query(field: &Field) -> Option<&'static str> {
    match &field.ty {
        _ if field.secret => Some("is secret, and queries are written to logs on their way"),
        Type::List(_) => Some("is a list, which no query can hold"),
        ty if ty.needs_body() => Some("is a text or has parts, which no query can hold"),
        _ => None,
    }
}

fn read(raw: &str) -> Option<Http> {
    let (method, path) = raw.split_once(' ')?;
    let known = ["GET", "POST", "PUT", "PATCH", "DELETE"].contains(&method);
    let sound = known && path.starts_with("/v1/") && path[1..].split('/').all(is_segment);
    sound.then(|| Http { method: method.to_owned(), path: path.to_owned() })
}

/// A read has a body only if an argument needs one.
fn methods(effect: &EffectSpec, needs_body: bool) -> (&'static str, &'static [&'static str]) {
    match effect {
        EffectSpec::Read if needs_body => ("read", &["POST"]),
        EffectSpec::Read => ("read", &["GET"]),
        EffectSpec::ReadTask => ("read_task", &["GET"]),
        EffectSpec::Act(_) => ("act", &["POST", "PUT", "PATCH", "DELETE"]),
        EffectSpec::Issue => ("issue", &["POST"]),
        EffectSpec::Task(_) => ("task", &["PUT", "POST", "DELETE"]),
    }
}

fn is_argument(part: &str) -> bool {
    part.starts_with('{')
}

fn is_segment(part: &str) -> bool {
    match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
        Some(argument) => is_wire(argument),
        None => {
            let admits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-".contains(&b);
            !part.is_empty() && part.bytes().all(admits)
        }
    }
}
