//! Calls one tool of a running server: over the endpoint with the key in two headers, or over
//! `/v1`, signed. Start at [`call`].
//!
//! The compiled contract gives the types of arguments and the routes. The server decides if a call
//! is valid and allowed.

use crate::cli::CallOptions;
use crate::connection::{Connection, HttpAnswer, Repeat};
use crate::error::{ClientError, complain};
use crate::sign::{content, fresh_nonce, now, sign_with};
use http::header::CONTENT_TYPE;
use http::{Request, StatusCode};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;
use toolwarrant_common::json;
use toolwarrant_signing as signing;
use url::Url;

#[derive(Clone, Debug)]
pub struct ToolShape {
    pub name: &'static str,
    pub input_schema: &'static str,
    /// The method and path of its twin under `/v1`, with `{argument}` for path parameters.
    pub route: Option<(&'static str, &'static str)>,
    pub reads: bool,
    /// The field of its result that comes as a block of its own.
    pub body: Option<&'static str>,
}

#[derive(Debug, PartialEq)]
pub struct Called {
    pub result: Value,
    /// False if the task ended otherwise, or if the idempotency key belongs to another write.
    pub succeeded: bool,
}

pub async fn call(connection: &Connection, tools: &[ToolShape], options: &CallOptions) -> Result<Called, ClientError> {
    let CallOptions { tool, arguments, v1, wait, connect: _ } = options;
    let Some(shape) = tools.iter().find(|known| known.name == tool) else {
        let known: Vec<_> = tools.iter().map(|known| known.name).collect();
        return Err(parse_error(format!("there is no tool `{tool}`; there are {}", known.join(", "))));
    };
    let caller = Caller { connection, signs: *v1 };
    let mut result = caller.call(shape, shape.arguments(arguments)?).await?;
    if result["request_matches"] == false {
        return Ok(Called { result, succeeded: false });
    }
    let is_task = |result: &Value| result["task_id"].is_string() && result["terminal"].is_boolean();
    if !wait || !is_task(&result) {
        return Ok(Called { result, succeeded: true });
    }
    let reader = tools.iter().find(|known| known.reads && known.takes(&["task_id", "wait_seconds"]));
    let reader = reader.ok_or_else(|| parse_error("no tool reads tasks".to_owned()))?;
    while result["terminal"] == false {
        let arguments = json!({"task_id": result["task_id"], "wait_seconds": HOLD});
        let Value::Object(arguments) = arguments else { continue };
        match caller.call(reader, arguments).await {
            Ok(task) => result = task,
            Err(ClientError { retryable: true, retry_after_seconds, .. }) => {
                tokio::time::sleep(Duration::from_secs(retry_after_seconds.unwrap_or(1).into())).await;
            }
            Err(error) => return Err(error),
        }
    }
    let succeeded = result["status"].as_str().is_some_and(|status| SUCCEEDED.contains(&status));
    Ok(Called { result, succeeded })
}

/// In seconds. If the clocks are right, a server knows after this time that it has not answered a
/// read before.
const START: u32 = 5;

/// In seconds. Some gateways end a request after 30.
const HOLD: u32 = 25;

const SUCCEEDED: [&str; 2] = ["success", "success_unverified"];

/// It has no session, and every server that has sessions supports it.
const REVISION: &str = "2025-03-26";

impl ToolShape {
    /// Sends a value that does not fit its type as text: the server reports the expected type.
    fn arguments(&self, typed: &[String]) -> Result<Map<String, Value>, ClientError> {
        let properties = self.properties();
        let mut arguments = Map::new();
        for typed in typed {
            let (name, text) =
                typed.split_once('=').ok_or_else(|| parse_error(format!("`{typed}` is not NAME=VALUE")))?;
            let nullable = properties[name]["anyOf"].as_array();
            let schema = nullable.map_or(&properties[name], |forms| &forms[0]);
            let text = match text.strip_prefix('@') {
                Some(path) => {
                    let bytes = content(Path::new(path)).map_err(|error| parse_error(error.to_string()))?;
                    let text = String::from_utf8(bytes).map_err(|_| parse_error(format!("{path} is not UTF-8")))?;
                    if is_text(schema) { text } else { text.trim_end_matches(['\r', '\n']).to_owned() }
                }
                None => text.to_owned(),
            };
            let value = match schema["type"].as_str() {
                _ if text == "null" && nullable.is_some() => Value::Null,
                None | Some("string") => Value::String(text),
                Some(_) => json::read(&text).unwrap_or(Value::String(text)),
            };
            if arguments.insert(name.to_owned(), value).is_some() {
                return Err(parse_error(format!("`{name}` is given twice")));
            }
        }
        Ok(arguments)
    }

    fn repeat(&self) -> Repeat {
        if self.reads { Repeat::Harmless } else { Repeat::Never }
    }

    fn takes(&self, names: &[&str]) -> bool {
        let properties = self.properties();
        names.iter().all(|name| properties[*name].is_object())
    }

    fn properties(&self) -> Value {
        let schema: Value = json::read(self.input_schema).unwrap_or_default();
        schema["properties"].clone()
    }
}

/// Returns true for a text, whose lines all count. Other strings do not end with a line end, but
/// the file of one often does.
fn is_text(schema: &Value) -> bool {
    schema["maxLength"].is_number() && ["minLength", "pattern"].iter().all(|key| schema[*key].is_null())
}

struct Caller<'a> {
    connection: &'a Connection,
    signs: bool,
}

impl Caller<'_> {
    async fn call(&self, tool: &ToolShape, arguments: Map<String, Value>) -> Result<Value, ClientError> {
        if self.signs { self.call_signed(tool, arguments).await } else { self.over_endpoint(tool, arguments).await }
    }

    async fn over_endpoint(&self, tool: &ToolShape, arguments: Map<String, Value>) -> Result<Value, ClientError> {
        let params = json!({"name": tool.name, "arguments": arguments});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let head = |request: http::request::Builder| request.header("mcp-protocol-version", REVISION);
        let answer = self.connection.post(body.into(), tool.repeat(), head).await?;
        if answer.status == 401 {
            return Err(self.connection.refusal(&answer.key_id));
        }
        let body: Value =
            json::read_bytes(&answer.body).map_err(|_| self.connection.strange(&answer, tool.repeat()))?;
        if let Some(error) = body.get("error") {
            return Err(self.failure(error["data"].clone(), &answer, tool));
        }
        let result = &body["result"];
        let is_error = result["isError"] == true;
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        let mut value: Value = json::read(text).map_err(|_| self.connection.strange(&answer, tool.repeat()))?;
        let mut items = result["content"].as_array().into_iter().flatten().skip(1);
        if let (Some(field), false, Some(members)) = (tool.body, is_error, value.as_object_mut()) {
            let body = items.next().and_then(|item| item.get("data").or(item.get("text")));
            members.insert(field.to_owned(), body.cloned().unwrap_or_default());
        }
        items.filter_map(|item| item["text"].as_str()).for_each(|note| complain(tool.name, note));
        if is_error { Err(self.failure(value, &answer, tool)) } else { Ok(value) }
    }

    async fn call_signed(&self, tool: &ToolShape, arguments: Map<String, Value>) -> Result<Value, ClientError> {
        let twin = Twin::of(tool, arguments)?;
        let Twin { method, path, query, idempotency_key, body } = &twin;
        let no_base =
            || parse_error(format!("{} does not end in /mcp, so where /v1 is cannot be told", self.connection.url()));
        let url = self.connection.url().beside(path, query).ok_or_else(no_base)?;
        // The server signs the path that it receives, from /v1 on.
        let target = |url: &Url| url.path().find("/v1/").map(|at| url.path()[at..].to_owned());
        if target(&url).as_deref() != Some(path) {
            return Err(parse_error(format!("an argument cannot stand in a path: {path}")));
        }
        fresh_nonce().map_err(|error| parse_error(error.to_string()))?;
        let request = |key: &crate::ApiKey| {
            // The check above has shown that random bytes are available.
            let (key_id, timestamp, nonce) = (&key.id, &now(), &fresh_nonce().unwrap_or_default());
            let body_bytes = body.as_bytes();
            let signable =
                signing::Request { key_id, timestamp, nonce, method, path, query, idempotency_key, body: body_bytes };
            let headers = sign_with(key.secret(), signable).headers;
            let request = Request::builder().method(*method).uri(url.as_str());
            let request = if body.is_empty() { request } else { request.header(CONTENT_TYPE, "application/json") };
            let request = headers.into_iter().fold(request, |request, (name, value)| request.header(name, value));
            request.body(body.clone().into())
        };
        let mut answer = self.connection.send(tool.repeat(), &request).await?;
        // A server takes no read that was signed before its start.
        if let (true, StatusCode::SERVICE_UNAVAILABLE, Some(seconds @ ..=START)) =
            (tool.reads, answer.status, answer.retry_after)
        {
            tokio::time::sleep(Duration::from_secs(seconds.into())).await;
            answer = self.connection.send(tool.repeat(), &request).await?;
        }
        let value = json::read_bytes(&answer.body).map_err(|_| self.connection.strange(&answer, tool.repeat()))?;
        if answer.status.is_success() { Ok(value) } else { Err(self.failure(value, &answer, tool)) }
    }

    fn failure(&self, told: Value, answer: &HttpAnswer, tool: &ToolShape) -> ClientError {
        json::convert(&told).unwrap_or_else(|_| self.connection.strange(answer, tool.repeat()))
    }
}

#[derive(Debug, PartialEq)]
struct Twin {
    method: &'static str,
    path: String,
    query: String,
    idempotency_key: String,
    body: String,
}

impl Twin {
    fn of(tool: &ToolShape, mut arguments: Map<String, Value>) -> Result<Self, ClientError> {
        let (method, template) =
            tool.route.ok_or_else(|| parse_error(format!("`{}` has no route under /v1; leave --v1 out", tool.name)))?;
        let mut path = String::new();
        for (n, segment) in template.split('/').enumerate() {
            path.push_str(if n == 0 { "" } else { "/" });
            match segment.strip_prefix('{').and_then(|segment| segment.strip_suffix('}')) {
                Some(name) => {
                    let value = arguments.shift_remove(name).ok_or_else(|| {
                        parse_error(format!("`{name}` is missing, which stands in the path {template}"))
                    })?;
                    path.push_str(&percent_encode(&text(&value)));
                }
                None => path.push_str(segment),
            }
        }
        let key = if method == "GET" { None } else { arguments.shift_remove(IDEMPOTENCY_KEY) };
        let idempotency_key = key.as_ref().map(text).unwrap_or_default();
        let (query, body) = match method {
            "GET" | "DELETE" => {
                let pair = |(name, value): (&String, &Value)| {
                    format!("{}={}", percent_encode(name), percent_encode(&text(value)))
                };
                (arguments.iter().map(pair).collect::<Vec<_>>().join("&"), String::new())
            }
            _ => (String::new(), Value::Object(arguments).to_string()),
        };
        Ok(Self { method, path, query, idempotency_key, body })
    }
}

const IDEMPOTENCY_KEY: &str = "idempotency_key";

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Encodes all but unreserved characters (RFC 3986).
fn percent_encode(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte.into());
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

fn parse_error(why: String) -> ClientError {
    ClientError::final_one("invalid_argument", why)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{"type":"object","properties":{"printer_id":{"type":"string"},"copies":{"type":"integer"},"colour":{"type":"boolean"},"idempotency_key":{"type":"string"},"page":{"anyOf":[{"type":"string","maxLength":99},{"type":"null"}]}}}"#;

    fn twin(method: &'static str, typed: &[&str]) -> Result<Twin, ClientError> {
        let tool = ToolShape {
            name: "print",
            input_schema: SCHEMA,
            route: Some((method, "/v1/printers/{printer_id}/pages")),
            reads: false,
            body: None,
        };
        let typed: Vec<_> = typed.iter().map(|text| (*text).to_owned()).collect();
        Twin::of(&tool, tool.arguments(&typed)?)
    }

    #[test]
    fn arguments_take_the_types_of_the_schema_and_their_places_in_the_request() {
        let typed = ["printer_id=p/1 \u{e9}", "copies=2", "colour=true", "idempotency_key=k1", "note=a=b"];
        let put = twin("PUT", &typed).expect("a request");
        assert_eq!((&*put.path, &*put.query, &*put.idempotency_key), ("/v1/printers/p%2F1%20%C3%A9/pages", "", "k1"));
        assert_eq!(put.body, r#"{"copies":2,"colour":true,"note":"a=b"}"#);
        let get = twin("GET", &["printer_id=p", "copies=x y", "colour=false"]).expect("a request");
        assert_eq!((&*get.path, &*get.query, &*get.body), ("/v1/printers/p/pages", "copies=x%20y&colour=false", ""));
        for (typed, why) in [
            (&["copies=1"][..], "`printer_id` is missing"),
            (&["printer_id"], "is not NAME=VALUE"),
            (&["printer_id=a", "printer_id=b"], "given twice"),
            (&["printer_id=@/nowhere"], "cannot read /nowhere"),
        ] {
            assert!(twin("PUT", typed).expect_err("malformed").message.contains(why), "{typed:?}");
        }
    }

    #[test]
    fn a_text_of_a_file_is_sent_byte_for_byte_and_another_string_without_its_last_line_end() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let text = std::fs::read_to_string(file).expect("a text");
        let typed = ["printer_id", "page"].map(|name| format!("{name}=@{file}"));
        let put = twin("PUT", &typed.each_ref().map(String::as_str)).expect("a request");
        assert!(text.ends_with('\n'), "an editor ends a file so");
        assert_eq!(put.body, json!({ "page": text }).to_string());
        assert_eq!(put.path, format!("/v1/printers/{}/pages", percent_encode(text.trim_end())));
    }
}
