//! `curl`, `wget` and `nc`, with the options that commands of the product use. The others are
//! refused. An answer is read to its end, and not parsed. The limits of time are not kept: a busy
//! machine could miss them, and nothing that the double offers waits for long.

use super::phone::{Failure, Phone};
use crate::net;
use crate::traffic::{Hop, Way};
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

fn describe_failure(name: &str) -> impl Fn(String) -> Failure {
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
    io::stdout().write_all(&answer).map_err(|error| describe_failure("wget")(error.to_string()))
}

/// Closes its side once stdin ends, like toybox's, and continues until the other side has closed
/// too.
pub(super) async fn nc(phone: &Phone, arguments: &[String]) -> Result<(), Failure> {
    let Nc { within: _, host, port } = parse("nc", arguments)?;
    let is_proxy = net::resolve(&host).is_some_and(|address| !address.is_loopback());
    let reach =
        async { if is_proxy { reach_proxy(phone, &host, port).await } else { reach(phone, &host, port, None).await } };
    let reached = reach.await.map_err(describe_failure("nc"))?;
    let Reached::Stream(stream) = reached else { return Ok(()) };
    let (mut read, mut write) = stream.into_split();
    let send = async {
        let _ = copy(&mut stdin(), &mut write).await;
        let _ = write.shutdown().await;
        std::future::pending::<()>().await;
    };
    let (mut stdout, receive) = (stdout(), &mut read);
    tokio::select! { () = send => (), _ = copy(receive, &mut stdout) => () }
    Ok(())
}

enum Reached {
    Stream(TcpStream),
    /// The proxy itself answers.
    Told(String),
}

async fn request(phone: &Phone, url: &Url, proxy: Option<Hop>) -> Result<Vec<u8>, String> {
    let host = url.host_str().unwrap_or_default();
    let stream = match reach(phone, host, url.port_or_known_default().unwrap_or(80), proxy).await? {
        Reached::Told(body) => return Ok(body.into_bytes()),
        Reached::Stream(stream) => stream,
    };
    let target = &url[url::Position::BeforePath..];
    let authority = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let request = format!("GET {target} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    net::exchange(stream, &request).await.map_err(|error| error.to_string())
}

async fn reach(phone: &Phone, host: &str, port: u16, proxy: Option<Hop>) -> Result<Reached, String> {
    let to = net::resolve(host).ok_or_else(|| format!("{host}: no address"))?;
    match phone.way(proxy).await.map_err(|error| error.to_string())? {
        Way::From { source } => {
            let stream = net::connect(source, to, port).await;
            stream.map(Reached::Stream).map_err(|error| error.to_string())
        }
        Way::Told { body } => Ok(Reached::Told(body)),
        Way::NoLogin | Way::Dead => Err("the proxy refuses the connection".to_owned()),
    }
}

/// Asks the double, which takes the part of a proxy that need not exist.
async fn reach_proxy(phone: &Phone, host: &str, port: u16) -> Result<Reached, String> {
    let service = format!("proxy:{} {host} {port}", phone.pad);
    let connect = async {
        let mut stream = TcpStream::connect(phone.adb).await?;
        stream.write_all(format!("{:04x}{service}", service.len()).as_bytes()).await?;
        Ok::<_, io::Error>(Reached::Stream(stream))
    };
    connect.await.map_err(|error| error.to_string())
}
