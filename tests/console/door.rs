//! The door of the console: what opens it, what does not, and what of a link and a session can be
//! found later.

use super::browser::{Browser, OWN};
use crate::harness::program::{Program, WATCHED, json_of, operate};
use std::process::Command;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test]
async fn a_link_opens_the_console_once_and_nothing_else_does() {
    let program = Program::start(WATCHED).await;
    assert_eq!(json_of(&program.data, "console list").await, serde_json::json!([]));
    let (browser, code) = Browser::at_the_door(&program.data, "").await;
    assert!(browser.host.starts_with("console-") && browser.host.contains(".localhost:"), "{}", browser.host);
    // A POST without a body has no form.
    for (guess, status) in [("", 415), ("code=", 403), ("code=00000000000000000000000000000000", 403)] {
        assert_eq!(browser.post("/in", guess, OWN).await.status, status, "{guess}");
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
    // Keeps the console open.
    let _other = Browser::enter(&program, "").await;
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
async fn a_forwarded_port_is_taken_at_the_names_of_the_console_and_at_no_other() {
    let program = Program::start(WATCHED).await;
    let browser = Browser::enter(&program, "").await;
    let (name, _) = browser.host.rsplit_once(':').expect("a port");
    let send = async |host: &str, origin: &str| {
        let headers = format!("host: {host}\r\norigin: http://{origin}\r\n");
        [browser.send("GET /", &headers, "").await.status, browser.post("/find", "id=x", &headers).await.status]
    };
    for port in [":9999", ":1", ":65535", ""] {
        let host = format!("{name}{port}");
        assert_eq!(send(&host, &host).await, [200, 404], "{host}");
        assert_eq!(send(&host, &browser.host).await, [403, 403], "{host}: another origin");
    }
    let [plain, others] = [
        ["127.0.0.1:9999", "localhost:9999", "localhost"],
        ["evil.example:9999", "127.0.0.2:9999", "x.localhost:9999"],
    ];
    let malformed = [":x", ":99999", ":1:2", ":"].map(|port| format!("{name}{port}"));
    for host in plain.into_iter().chain(others).chain(malformed.iter().map(|host| &**host)) {
        assert_eq!(send(host, host).await, [403, 403], "{host}");
    }
    Browser::at_the_door(&program.data, "--plain-host").await;
    for (host, status) in plain.map(|host| (host, [200, 404])).into_iter().chain(others.map(|host| (host, [403; 2]))) {
        assert_eq!(send(host, host).await, status, "{host}");
    }
}

#[tokio::test]
async fn a_code_leads_to_the_page_that_was_asked_for_and_never_to_another_site() {
    let program = Program::start(WATCHED).await;
    for (asked, field, sent, location) in [
        ("/tasks/task_1", "/tasks/task_1", "%2Ftasks%2Ftask_1", "/tasks/task_1"),
        ("/tasks?since=1d&x=%22", "/tasks?since=1d&#38;x=%22", "/tasks?since=1d%26x=%2522", "/tasks?since=1d&x=%22"),
        ("/nothing?'x", "/nothing?&#39;x", "", "/"),
        ("/in", "", "/%5Cevil.example", "/"),
        ("//evil.example", "//evil.example", "//evil.example", "/"),
        ("/", "/", "/%09/evil.example", "/"),
        ("/", "/", "/%0D%0Ax:%20y", "/"),
        ("/", "/", "https://evil.example/", "/"),
        ("/", "/", "javascript:alert(1)", "/"),
    ] {
        let (browser, code) = Browser::at_the_door(&program.data, "").await;
        let page = browser.get(asked).await.body;
        assert!(page.contains(&format!("name=\"to\" value=\"{field}\"")), "{asked}: {page}");
        let answer = browser.post("/in", &format!("code={code}&to={sent}"), OWN).await;
        assert_eq!((answer.status, answer.header("location")), (303, Some(location)), "{sent}");
    }
}

#[tokio::test]
async fn idle_connections_give_way_to_a_browser_and_those_without_a_session_do_first() {
    let program = Program::start(WATCHED).await;
    let browser = Browser::enter(&program, "").await;
    let port = browser.host.rsplit(':').next().expect("a port");
    let connect = async || TcpStream::connect(format!("127.0.0.1:{port}")).await.expect("a connection");
    let request = |cookie: &str| format!("GET /nothing HTTP/1.1\r\nhost: {}\r\ncookie: {cookie}\r\n\r\n", browser.host);
    let ask = async |stream: &mut TcpStream, cookie: &str| {
        stream.write_all(request(cookie).as_bytes()).await.expect("sent");
        let mut answer = Vec::new();
        while !answer.ends_with(b"</html>") {
            assert_ne!(stream.read_buf(&mut answer).await.expect("an answer"), 0, "the connection was given up");
        }
        String::from_utf8(answer).expect("text")
    };
    let answer = ask(&mut connect().await, "console=0").await;
    assert!(answer.contains("HTTP/1.1 401") && answer.contains("connection: close"), "{answer}");
    let mut own = connect().await;
    for sent in ["", "GET / HT", &request("console=0")] {
        assert!(ask(&mut own, &browser.cookie).await.starts_with("HTTP/1.1 404"));
        let mut held = Vec::new();
        for _ in 0..300 {
            held.push(connect().await);
            held.last_mut().expect("one").write_all(sent.as_bytes()).await.expect("sent");
        }
        assert_eq!(browser.get("/nothing").await.status, 404, "{sent}");
        assert!(ask(&mut own, &browser.cookie).await.starts_with("HTTP/1.1 404"), "{sent}");
    }
}

#[tokio::test]
async fn a_loop_of_pages_is_refused_after_a_while_and_a_command_is_not() {
    let program = Program::start(WATCHED).await;
    let [browser, other] = [Browser::enter(&program, "").await, Browser::enter(&program, "").await];
    let mut pages = 0;
    while pages < 2_000 && browser.get("/nothing").await.status == 404 {
        pages += 1;
    }
    let answer = other.send("GET /tasks", "x-shown: 0\r\n", "").await;
    assert!(pages >= 300 && answer.status == 429 && answer.body.contains("300 pages"), "{pages}: {}", answer.body);
    assert_eq!(json_of(&program.data, "console list").await.as_array().map(Vec::len), Some(2));
    assert_eq!(other.post("/out", "x=", OWN).await.status, 303, "a session can always end");
}

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; frame-ancestors 'none'; \
                      base-uri 'none'; form-action 'self'; require-trusted-types-for 'script'";

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
        assert!(POLICY.split("; ").all(|rule| policy.contains(rule)), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        for name in ["referrer-policy", "cross-origin-opener-policy", "cross-origin-resource-policy"] {
            assert_eq!(answer.header(name), Some("same-origin"), "{name}");
        }
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
    let closed = kit::wait_for(async || match TcpStream::connect(format!("127.0.0.1:{port}")).await {
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
    browser.keep_cookie(&answer);
    let (_, page) = browser.act("/act/key/create?app=demo", "app=demo").await;
    let (_, secret) = page.split_once(":cps_").expect("a secret");
    let secret = secret.split('"').next().expect("a secret");
    program.stop().await;
    let cookie = browser.cookie.split(['=', '.']).nth(1).expect("a value");
    let hidden = [&*code, cookie, secret];
    assert!(hidden.iter().all(|text| text.len() >= 32), "{hidden:?}");
    // In the data and in the log.
    let mut grep = Command::new("grep");
    grep.args(["-r", "-a", "-F"]).args(hidden.iter().flat_map(|text| ["-e", text])).arg(program.home.path());
    let found = grep.output().expect("grep");
    assert_eq!((found.status.code(), String::from_utf8_lossy(&found.stdout)), (Some(1), "".into()));
    let acts = json_of(&program.data, "acts").await;
    let made = acts.as_array().into_iter().flatten().find(|act| act["command"] == "console").expect("an act");
    assert_eq!(made["changes"], serde_json::json!({"role": {"before": null, "after": "operate"}}));
    assert_eq!(json_of(&program.data, "audit verify").await["sound"], true);
}
