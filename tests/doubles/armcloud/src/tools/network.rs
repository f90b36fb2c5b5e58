//! `curl`, `wget` and `nc`, with the options that commands of the product use. The others are
//! refused. An answer is read to its end, and not parsed. The limits of time are not kept: a busy
//! machine could miss them, and nothing that the double offers waits for long.

use super::phone::{Failure, Phone};
use crate::net;
use crate::traffic::{Hop, Journey};
use clap::Parser;
use std::io::{self, Write as _};
use tokio::io::{AsyncWriteExt as _, copy, stdin, stdout};
use tokio::net::TcpStream;
use url::Url;

#[derive(Parser)]
struct Curl {
    #[arg(short)]
    silent: bool,
    #[arg(short)]
    max_time: u64,
    #[arg(short)]
    output: String,
    #[arg(short = 'x')]
    proxy: Option<Url>,
    url: Url,
}

#[derive(Parser)]
struct Wget {
    #[arg(short = 'O')]
    output: String,
    url: Url,
}

#[derive(Parser)]
struct Nc {
    #[arg(short)]
    within: u64,
    host: String,
    port: u16,
}

fn parse<T: Parser>(name: &str, arguments: &[String]) -> Result<T, Failure> {
    let line = [name].into_iter().chain(arguments.iter().map(String::as_str));
    T::try_parse_from(line).map_err(|error| Failure::new(2, error.to_string()))
}

fn describe_failure(name: &str) -> impl Fn(io::Error) -> Failure {
    move |why| Failure::new(1, format!("{name}: {why}"))
}

pub(super) async fn curl(phone: &Phone, arguments: &[String]) -> Result<(), Failure> {
    let Curl { silent: _, max_time: _, output: _, proxy, url } = parse("curl", arguments)?;
    let hop = |url: Url| Hop {
        host: url.host_str().unwrap_or_default().to_owned(),
        // The parser drops the default port of `http://`.
        port: url.port_or_known_default().unwrap_or(1_080),
        login: (!url.username().is_empty())
            .then(|| format!("{}:{}", url.username(), url.password().unwrap_or_default())),
    };
    request(phone, &url, proxy.map(hop)).await.map(drop).map_err(describe_failure("curl"))
}

pub(super) async fn wget(phone: &Phone, arguments: &[String]) -> Result<(), Failure> {
    let Wget { output: _, url } = parse("wget", arguments)?;
    let answer = request(phone, &url, None).await.map_err(describe_failure("wget"))?;
    io::stdout().write_all(&answer).map_err(describe_failure("wget"))
}

/// Closes its side once stdin ends, like toybox's, and continues until the other side has closed
/// too.
pub(super) async fn nc(phone: &Phone, arguments: &[String]) -> Result<(), Failure> {
    let Nc { within: _, host, port } = parse("nc", arguments)?;
    let (mut read, mut write) = reach(phone, &host, port, None).await.map_err(describe_failure("nc"))?.into_split();
    let send = async {
        let _ = copy(&mut stdin(), &mut write).await;
        let _ = write.shutdown().await;
        std::future::pending::<()>().await;
    };
    let (mut stdout, receive) = (stdout(), &mut read);
    tokio::select! { () = send => (), _ = copy(receive, &mut stdout) => () }
    Ok(())
}

async fn request(phone: &Phone, url: &Url, proxy: Option<Hop>) -> io::Result<Vec<u8>> {
    let host = url.host_str().unwrap_or_default();
    let stream = reach(phone, host, url.port_or_known_default().unwrap_or(80), proxy).await?;
    let target = &url[url::Position::BeforePath..];
    let authority = &url[url::Position::BeforeHost..url::Position::AfterPort];
    net::exchange(stream, &format!("GET {target} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n")).await
}

/// Asks the double, which knows the way.
async fn reach(phone: &Phone, host: &str, port: u16, proxy: Option<Hop>) -> io::Result<TcpStream> {
    let journey = Journey { pad: phone.pad.clone(), host: host.to_owned(), port, proxy };
    let service = format!("connect:{}", serde_json::to_string(&journey)?);
    let mut stream = TcpStream::connect(phone.adb).await?;
    stream.write_all(format!("{:04x}{service}", service.len()).as_bytes()).await?;
    Ok(stream)
}
