//! A browser as far as these tests need one: a host, a cookie, and the headers that say where a
//! request comes from.

use crate::harness::program::{Program, json_of};
use kit::{HttpAnswer, exchange};
use serde_json::Value;
use std::path::Path;

#[derive(Clone)]
pub(crate) struct Browser {
    pub(crate) host: String,
    pub(crate) cookie: String,
}

/// The headers of a form that a page of the console sends.
pub(crate) const OWN: &str = "sec-fetch-site: same-origin\r\n";

impl Browser {
    /// Returns the code of the link as well.
    pub(crate) async fn at_the_door(data: &Path, flags: &str) -> (Self, String) {
        Self::at_link(&json_of(data, format!("console {flags}").trim_end()).await)
    }

    pub(crate) fn at_link(answer: &Value) -> (Self, String) {
        let link = answer["link"].as_str().expect("a link");
        let (place, code) = link.strip_prefix("http://").and_then(|rest| rest.split_once("/in#")).expect("a code");
        (Self { host: place.to_owned(), cookie: String::new() }, code.to_owned())
    }

    pub(crate) async fn enter(program: &Program, flags: &str) -> Self {
        Self::enter_by(&json_of(&program.data, format!("console {flags}").trim_end()).await).await
    }

    pub(crate) async fn enter_by(answer: &Value) -> Self {
        let (mut browser, code) = Self::at_link(answer);
        let answer = browser.post("/in", &format!("code={code}"), OWN).await;
        assert_eq!((answer.status, answer.header("location")), (303, Some("/")), "{}", answer.body);
        browser.keep_cookie(&answer);
        browser
    }

    pub(crate) fn keep_cookie(&mut self, answer: &HttpAnswer) {
        let cookie = answer.header("set-cookie").expect("a cookie");
        assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
        self.cookie = cookie.split(';').next().expect("a value").to_owned();
    }

    pub(crate) async fn send(&self, line: &str, headers: &str, body: &str) -> HttpAnswer {
        let Self { host, cookie } = self;
        let port = host.rsplit(':').next().expect("a port");
        let (kind, length) = ("application/x-www-form-urlencoded", body.len());
        let kind = if body.is_empty() {
            String::new()
        } else {
            format!("content-type: {kind}\r\ncontent-length: {length}\r\n")
        };
        let host = if headers.starts_with("host:") { String::new() } else { format!("host: {host}\r\n") };
        let head =
            format!("{line} HTTP/1.1\r\n{host}{headers}{kind}cookie: other=1; {cookie}\r\nconnection: close\r\n\r\n");
        exchange(format!("127.0.0.1:{port}"), format!("{head}{body}").as_bytes()).await.expect("an answer")
    }

    pub(crate) async fn get(&self, path: &str) -> HttpAnswer {
        self.send(&format!("GET {path}"), "", "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &str, headers: &str) -> HttpAnswer {
        self.send(&format!("POST {path}"), headers, body).await
    }

    /// Fills in the form of an act. Returns the status, and the page.
    pub(crate) async fn act(&self, path: &str, fields: &str) -> (u16, String) {
        let page = self.get(path).await;
        assert_eq!(page.status, 200, "{}", page.body);
        let id = form_id(&page.body);
        let path = path.split('?').next().expect("a path");
        let answer = self.post(path, &format!("form-id={id}&{fields}"), OWN).await;
        (answer.status, answer.body)
    }
}

pub(crate) fn form_id(page: &str) -> String {
    let (_, rest) = page.split_once("name=\"form-id\" value=\"").expect("a form");
    rest.split('"').next().expect("an id").to_owned()
}
