//! Starts the program, and checks its `--help` and that it forwards a message.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cloudphone-bridge"));
    command.env_clear();
    command
}

#[test]
fn it_says_how_a_key_that_only_reads_is_made_and_used() {
    let help = program().arg("--help").output().expect("it runs");
    insta::assert_snapshot!(String::from_utf8_lossy(&help.stdout));
}

#[test]
fn it_passes_a_message_on_with_its_key_and_the_answer_back() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let mut bridge = program()
        .args(["--url", &url])
        .env("CLOUDPHONE_KEY", "key_1:secret_1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut input = bridge.stdin.take().expect("its input");
    writeln!(input, r#"{{"jsonrpc":"2.0","id":1,"method":"ping"}}"#).expect("it reads");
    let (mut stream, _) = listener.accept().expect("a connection");
    let mut request = Vec::new();
    while !request.ends_with(b"}") {
        let mut part = [0; 1024];
        let read = stream.read(&mut part).expect("a request");
        request.extend_from_slice(&part[..read]);
    }
    let request = String::from_utf8(request).expect("text");
    assert!(request.contains("x-api-key: key_1\r\n") && request.contains("x-api-secret: secret_1\r\n"), "{request}");
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{answer}", answer.len()).expect("it reads");
    let mut line = String::new();
    BufReader::new(bridge.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
    assert_eq!(line.trim_end(), answer);
    drop(input);
    assert!(bridge.wait().expect("it ends").success());
}
