//! The door of the console: what opens it, what does not, and what of a link and a session can be
//! found later.

use super::browser::{Browser, OWN};
use crate::harness::program::{Program, WATCHED, json_of, operate};
use std::fs;
use std::path::Path;
use tokio::net::TcpStream;

#[tokio::test]
async fn a_link_opens_the_console_once_and_nothing_else_does() {
    let program = Program::start(WATCHED).await;
    assert_eq!(json_of(&program.data, "console list").await, serde_json::json!([]));
    let (browser, code) = Browser::at_the_door(&program.data, "").await;
    assert!(browser.host.starts_with("console-") && browser.host.contains(".localhost:"), "{}", browser.host);
    for guess in ["", "code=", "code=0", "code=00000000000000000000000000000000"] {
        let answer = browser.post("/in", guess, OWN).await;
        // A POST without a body has no form.
        assert_eq!(answer.status, if guess.is_empty() { 415 } else { 403 }, "{guess}");
    }
    assert_eq!(browser.get("/").await.status, 401);
    let code = format!("code={code}");
    assert_eq!(browser.post("/in", &code, OWN).await.status, 303);
    assert_eq!(browser.post("/in", &code, OWN).await.status, 403, "a code works once");
    for path in ["/", "/tasks", "/act/key/create", "/fleet/device", "/nothing", "//", "/%2e%2e/"] {
        assert_eq!(browser.get(path).await.status, 401, "{path}");
    }
    let (other, _) = Browser::at_the_door(&program.data, "").await;
    assert_eq!(other.host, browser.host, "the console stays where it is");
}

#[tokio::test]
async fn a_request_from_another_host_origin_or_page_is_refused() {
    let program = Program::start(WATCHED).await;
    let browser = Browser::enter(&program, "--operate").await;
    let port = browser.host.rsplit(':').next().expect("a port");
    let own = format!("origin: http://{}\r\n", browser.host);
    assert_eq!(browser.get("/").await.status, 200);
    for host in ["evil.example", "localhost", "127.0.0.1", "console-0000000000.localhost"] {
        let answer = browser.send("GET /", &format!("host: {host}:{port}\r\n"), "").await;
        assert_eq!(answer.status, 403, "{host}");
    }
    let gets = [
        ("sec-fetch-site: none\r\n", 200),
        ("sec-fetch-site: cross-site\r\nsec-fetch-mode: navigate\r\nsec-fetch-dest: document\r\n", 200),
        ("sec-fetch-site: same-site\r\nsec-fetch-mode: navigate\r\nsec-fetch-dest: document\r\n", 403),
        ("sec-fetch-site: cross-site\r\nsec-fetch-mode: navigate\r\nsec-fetch-dest: iframe\r\n", 403),
        ("sec-fetch-site: same-site\r\nsec-fetch-mode: no-cors\r\n", 403),
        ("sec-fetch-site: cross-site\r\n", 403),
        ("origin: http://evil.example\r\n", 403),
        ("sec-fetch-site: none\r\nsec-fetch-site: none\r\n", 400),
    ];
    for (headers, status) in gets {
        assert_eq!(browser.send("GET /", headers, "").await.status, status, "{headers}");
    }
    let posts = [
        ("", 403),
        ("sec-fetch-site: none\r\n", 403),
        // Another port of this host: the browser sends the cookie along.
        ("sec-fetch-site: same-site\r\n", 403),
        ("sec-fetch-site: cross-site\r\n", 403),
        ("origin: null\r\n", 403),
        (&own.replace(port, "1"), 403),
        (&own.replace("http:", "https:"), 403),
        (&format!("{OWN}origin: http://evil.example\r\n"), 403),
        (&own, 303),
    ];
    for (headers, status) in posts {
        assert_eq!(browser.post("/out", "x=", headers).await.status, status, "{headers}");
    }
    assert_eq!(browser.get("/").await.status, 401, "the last one has ended the session");
    let large = format!("code={}", "0".repeat(70_000));
    assert_eq!(browser.post("/in", &large, OWN).await.status, 400);
    assert_eq!(browser.send("PUT /", OWN, "").await.status, 405);
}

#[tokio::test]
async fn every_answer_has_the_headers_that_protect_it() {
    let program = Program::start(WATCHED).await;
    let browser = Browser::enter(&program, "").await;
    let page = browser.get("/").await;
    let sheet = page.body.split('"').find(|text| text.ends_with(".css")).expect("a stylesheet").to_owned();
    let (foreign, outside) = (Browser { cookie: String::new(), ..browser.clone() }, "host: evil.example\r\n");
    let answers = [
        page,
        browser.get(&sheet).await,
        browser.get("/nothing").await,
        foreign.get("/").await,
        foreign.get("/in").await,
        browser.post("/out", "x=", OWN).await,
        browser.send("GET /", outside, "").await,
    ];
    for answer in answers {
        let policy = answer.header("content-security-policy").expect("a policy");
        for rule in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'self'",
            "require-trusted-types-for 'script'",
        ] {
            assert!(policy.contains(rule), "{rule}: {policy}");
        }
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("same-origin"));
        assert_eq!(answer.header("cross-origin-opener-policy"), Some("same-origin"));
        assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"));
        let is_file = answer.header("content-type") == Some("text/css; charset=utf-8");
        let kept = if is_file { "public, max-age=31536000, immutable" } else { "no-store" };
        assert_eq!(answer.header("cache-control"), Some(kept));
    }
}

#[tokio::test]
async fn a_session_ends_by_command_and_the_console_closes_behind_the_last() {
    let mut program = Program::start(WATCHED).await;
    let browsers = [Browser::enter(&program, "").await, Browser::enter(&program, "--operate").await];
    let sessions = json_of(&program.data, "console list").await;
    assert_eq!((&sessions[0]["role"], &sessions[1]["role"]), (&"view".into(), &"operate".into()));
    let first = sessions[0]["session"].as_str().expect("an id");
    json_of(&program.data, &format!("console end {first}")).await;
    assert_eq!([browsers[0].get("/").await.status, browsers[1].get("/").await.status], [401, 200]);
    assert_eq!(operate(&program.data, &format!("console end {first}")).await.0, 1);
    json_of(&program.data, "console end --all").await;
    let port = browsers[0].host.rsplit(':').next().expect("a port");
    let closed = driver::wait_for(async || match TcpStream::connect(format!("127.0.0.1:{port}")).await {
        Err(_) => Ok(()),
        Ok(_) => Err("it listens".to_owned()),
    });
    closed.await.expect("it closes");
    let (plain, _) = Browser::at_the_door(&program.data, "--plain-host").await;
    assert!(plain.host.starts_with("127.0.0.1:"), "{}", plain.host);
    assert_eq!(plain.get("/in").await.status, 200);
    program.stop().await;
    assert_eq!(operate(&program.data, "console").await.0, 5, "no server");
}

#[tokio::test]
async fn neither_code_nor_cookie_nor_a_new_secret_is_found_later() {
    let mut program = Program::start(WATCHED).await;
    let (mut browser, code) = Browser::at_the_door(&program.data, "--operate").await;
    let answer = browser.post("/in", &format!("code={code}"), OWN).await;
    browser.cookie =
        answer.header("set-cookie").and_then(|cookie| cookie.split(';').next()).expect("a cookie").to_owned();
    let (_, page) = browser.act("/act/key/create?app=demo", "app=demo").await;
    let (_, secret) = page.split_once("<code>cps_").expect("a secret");
    let secret = secret.split('<').next().expect("a secret");
    program.stop().await;
    let cookie = browser.cookie.split_once('=').expect("a value").1;
    let mut places = vec![program.log()];
    collect(&program.data, &mut places);
    for hidden in [&*code, cookie, secret] {
        assert!(hidden.len() >= 32 && places.iter().all(|text| !text.contains(hidden)), "{hidden} is found");
    }
    let acts = json_of(&program.data, "acts").await;
    let made = acts.as_array().into_iter().flatten().find(|act| act["command"] == "console").expect("an act");
    assert_eq!(made["changes"], serde_json::json!({"role": {"before": null, "after": "operate"}}));
    assert_eq!(json_of(&program.data, "audit verify").await["sound"], true);
}

fn collect(folder: &Path, places: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        match entry.path().is_dir() {
            true => collect(&entry.path(), places),
            false => places.push(String::from_utf8_lossy(&fs::read(entry.path()).unwrap_or_default()).into_owned()),
        }
    }
}
