//! The routes of `/v1`, made once from the contract.
//!
//! A path is matched as it was sent, segment by segment; `arguments` decodes only the values of
//! parameters. If a literal segment and a parameter both fit, the literal wins.

use crate::context::ServerProcess;
use bytes::Bytes;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use std::iter;
use toolwarrant_base::json;
use toolwarrant_core::catalogue::{Catalogue, ContractDef, HttpDef, ToolDef};
use toolwarrant_core::toolsets::Toolsets;

/// A GET of it needs no signature.
pub(super) const DOCUMENT: &str = "/v1/openapi.json";

#[derive(Debug)]
pub(crate) struct Routes {
    /// Those with the fewest parameters first.
    routes: Vec<Route>,
    /// Before the id of a task and after it, with the base path of the public URL.
    task: Option<(String, String)>,
    pub(super) document: Bytes,
    pub(super) contract: ContractDef,
}

#[derive(Debug)]
pub(super) struct Route {
    pub(super) tool: &'static ToolDef,
    is_offered: bool,
    method: &'static str,
    segments: Vec<Segment>,
    parameters: usize,
    arguments: HashMap<String, ArgumentKind>,
}

#[derive(Debug)]
enum Segment {
    Literal(&'static str),
    Parameter(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgumentKind {
    Text,
    Json,
}

pub(super) enum Matched<'a> {
    /// The arguments in the path are as they were sent.
    Route(&'a Route, Vec<(&'static str, &'a str)>),
    OtherMethod(Vec<&'static str>),
    Nothing,
}

impl Routes {
    /// Takes the base path, which appears only in answers.
    pub(crate) fn new(catalogue: &'static Catalogue, ServerProcess { base, toolsets, .. }: ServerProcess<'_>) -> Self {
        let mut routes: Vec<_> = catalogue.tools.iter().filter_map(|tool| Route::of(tool, toolsets)).collect();
        routes.sort_by_key(|route| route.parameters);
        let others: Vec<_> = catalogue.tools.iter().filter(|tool| !toolsets.offers(tool)).collect();
        let task = routes.iter().filter(|route| route.is_offered && route.tool.hints.read_only).find_map(|route| {
            let (before, after) = route.tool.http.as_ref()?.path.split_once("{task_id}")?;
            Some((format!("{base}{before}"), after.to_owned()))
        });
        let root = r#""servers":[{"url":"/"}]"#;
        let here = format!(r#""servers":[{{"url":{}}}]"#, Value::from(if base.is_empty() { "/" } else { base }));
        let document = without(catalogue.openapi, &others).replacen(root, &here, 1).into();
        Self { routes, task, document, contract: catalogue.contract }
    }

    pub(super) fn of_task(&self, id: &str) -> Option<String> {
        self.task.as_ref().map(|(before, after)| format!("{before}{id}{after}"))
    }

    pub(super) fn find<'a>(&'a self, method: &str, path: &'a str) -> Matched<'a> {
        if path == DOCUMENT || path == self.contract.path {
            return Matched::OtherMethod(vec!["GET"]);
        }
        let parts = path.split('/').count();
        let mut fitting = self.routes.iter().filter(|route| route.segments.len() == parts && route.fits(path));
        let Some(first) = fitting.next() else { return Matched::Nothing };
        // A path of a tool that is not offered does not become an argument of another tool.
        let same = fitting.take_while(|route| route.parameters == first.parameters);
        let mut methods = Vec::new();
        for route in iter::once(first).chain(same).filter(|route| route.is_offered) {
            if route.method == method {
                return Matched::Route(route, route.values(path).collect());
            }
            methods.push(route.method);
        }
        if methods.is_empty() { Matched::Nothing } else { Matched::OtherMethod(methods) }
    }
}

/// Takes the operations of tools out of the OpenAPI document.
fn without<'a>(document: &'a str, others: &[&ToolDef]) -> Cow<'a, str> {
    let mut others = others.iter().filter_map(|tool| tool.http.as_ref()).peekable();
    if others.peek().is_none() {
        return document.into();
    }
    let mut document: Value = json::read(document).unwrap_or_default();
    if let Some(paths) = document["paths"].as_object_mut() {
        for HttpDef { method, path } in others {
            if let Some(operations) = paths.get_mut(*path).and_then(Value::as_object_mut) {
                operations.shift_remove(&method.to_lowercase());
            }
        }
        paths.retain(|_, operations| operations.as_object().is_none_or(|operations| !operations.is_empty()));
    }
    document.to_string().into()
}

impl Route {
    fn of(tool: &'static ToolDef, toolsets: Toolsets) -> Option<Self> {
        let http = tool.http.as_ref()?;
        let parameter = |part: &'static str| part.strip_prefix('{')?.strip_suffix('}');
        let segment = |part| parameter(part).map_or(Segment::Literal(part), Segment::Parameter);
        let schema: Value = json::read(tool.input_schema).unwrap_or_default();
        let kind = |schema: &Value| if schema["type"] == "string" { ArgumentKind::Text } else { ArgumentKind::Json };
        let arguments = schema["properties"].as_object().into_iter().flatten();
        Some(Self {
            tool,
            is_offered: toolsets.offers(tool),
            method: http.method,
            parameters: http.path.split('/').filter_map(parameter).count(),
            segments: http.path.split('/').map(segment).collect(),
            arguments: arguments.map(|(name, schema)| (name.clone(), kind(schema))).collect(),
        })
    }

    /// Takes a path with as many segments.
    fn fits(&self, path: &str) -> bool {
        self.segments.iter().zip(path.split('/')).all(|(segment, part)| match segment {
            Segment::Literal(text) => *text == part,
            Segment::Parameter(_) => !part.is_empty(),
        })
    }

    fn values<'a>(&self, path: &'a str) -> impl Iterator<Item = (&'static str, &'a str)> {
        self.segments.iter().zip(path.split('/')).filter_map(|(segment, part)| match segment {
            Segment::Literal(_) => None,
            Segment::Parameter(name) => Some((*name, part)),
        })
    }

    pub(super) fn takes_body(&self) -> bool {
        matches!(self.method, "PUT" | "POST" | "PATCH")
    }

    pub(super) fn takes(&self, argument: &str) -> bool {
        self.arguments.contains_key(argument)
    }

    /// Turns a text that is not valid JSON into a string, which the tool refuses.
    pub(super) fn json(&self, argument: &str, text: Cow<'_, str>) -> String {
        let plain = |text: &str| text.starts_with(|first: char| first.is_ascii_digit() || "-tf".contains(first));
        let known = self.arguments.get(argument) == Some(&ArgumentKind::Json)
            && plain(&text)
            && !text.ends_with(char::is_whitespace);
        if known && json::read::<Value>(&text).is_ok() {
            return text.into_owned();
        }
        Value::from(text).to_string()
    }
}
