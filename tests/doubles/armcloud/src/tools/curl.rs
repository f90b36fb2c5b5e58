//! `curl`, as far as ordinary commands use it: one plain HTTP request, possibly through a proxy.

use super::phone::{Failure, Phone};
use crate::net::{self, Reply};
use crate::traffic::{Hop, Way};
use std::fs;
use std::io::{self, Write as _};
use url::Url;

#[derive(Debug, Default)]
struct Options {
    url: Option<String>,
    silent: bool,
    show_error: bool,
    fail: bool,
    max_time: Option<f64>,
    output: Option<String>,
    proxy: Option<String>,
    proxy_user: Option<String>,
    no_proxy: String,
    write_out: Option<String>,
    headers: Vec<String>,
    agent: Option<String>,
}

const VALUED: [(&str, &str); 9] = [
    ("-m", "--max-time"),
    ("", "--connect-timeout"),
    ("-o", "--output"),
    ("-x", "--proxy"),
    ("-U", "--proxy-user"),
    ("", "--noproxy"),
    ("-w", "--write-out"),
    ("-H", "--header"),
    ("-A", "--user-agent"),
];
const FLAGS: [(&str, &str); 5] =
    [("-s", "--silent"), ("-S", "--show-error"), ("-f", "--fail"), ("-4", "--ipv4"), ("-k", "--insecure")];

pub(super) async fn run(phone: &Phone, arguments: &[String]) -> Result<(), Failure> {
    let options = parse(arguments)?;
    let (is_mute, write_out) = (options.silent && !options.show_error, options.write_out.clone());
    let timed_out = || Failure::new(28, "curl: (28) Operation timed out");
    let mut ended = match net::within(options.max_time, transfer(phone, &options)).await {
        Some(ended) => ended,
        None => Err((timed_out(), 0)),
    };
    if let Ok(reply) = &ended {
        let status = reply.status;
        if options.fail && status >= 400 {
            let message = format!("curl: (22) The requested URL returned error: {status}");
            ended = Err((Failure::new(22, message), status));
        } else if let Err(error) = write(&options, &reply.body) {
            ended =
                Err((Failure::new(23, format!("curl: (23) Failure writing output to destination: {error}")), status));
        }
    }
    let (status, failure) = match ended {
        Ok(reply) => (reply.status, None),
        Err((failure, status)) => (status, Some(failure)),
    };
    if let Some(format) = write_out {
        let code = failure.as_ref().map_or(0, |failure| failure.status);
        let text = format
            .replace("%{http_code}", &format!("{status:03}"))
            .replace("%{response_code}", &format!("{status:03}"));
        let text = text.replace("%{exitcode}", &code.to_string()).replace("\\n", "\n").replace("\\t", "\t");
        print!("{text}");
    }
    match failure {
        Some(Failure { status, message: _ }) if is_mute => Err(Failure::new(status, "")),
        Some(failure) => Err(failure),
        None => Ok(()),
    }
}

/// Fails with the HTTP status, or 0 if there was none.
async fn transfer(phone: &Phone, options: &Options) -> Result<Reply, (Failure, u16)> {
    let failed = |status: u8, what: &str| (Failure::new(status, format!("curl: ({status}) {what}")), 0);
    let written = options.url.as_deref().unwrap_or_default();
    let url = if written.contains("://") { written.to_owned() } else { format!("http://{written}") };
    let url = Url::parse(&url).map_err(|_| failed(3, "URL rejected: Malformed input to a URL function"))?;
    if url.scheme() != "http" {
        return Err(failed(1, &format!("Protocol \"{}\" not supported or disabled in libcurl", url.scheme())));
    }
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or(80);
    let is_direct = options.no_proxy.split(',').any(|name| name.trim() == "*" || name.trim() == host);
    let proxy = options.proxy.as_deref().filter(|proxy| !is_direct && !proxy.is_empty());
    let proxy = proxy.map(|proxy| hop(proxy, options.proxy_user.clone())).transpose()?;
    let is_socks = proxy.as_ref().map(|(scheme, _)| scheme.starts_with("socks"));
    let to = net::resolve(host);
    if to.is_none() && is_socks.is_none() {
        return Err(failed(6, &format!("Could not resolve host: {host}")));
    }
    let way = phone.way(host, port, proxy.map(|(_, hop)| hop)).await;
    let refused = || failed(7, &format!("Failed to connect to {host} port {port}: Connection refused"));
    let source = match (way.map_err(|error| failed(7, &error.to_string()))?, is_socks) {
        (Way::From { source }, _) => source,
        (Way::Told { body }, _) => return Ok(net::reply_text(&body)),
        (Way::NoLogin, Some(true)) => return Err(failed(97, "User was rejected by the SOCKS5 server (1 1).")),
        (Way::NoLogin, Some(false)) => {
            let body = b"Proxy Authentication Required\n".to_vec();
            return Ok(Reply { status: 407, head: String::new(), body });
        }
        (Way::Dead, Some(_)) => return Err(failed(7, "Failed to connect to the proxy: Connection refused")),
        (Way::NoLogin | Way::Dead, None) => return Err(failed(52, "Empty reply from server")),
    };
    let Some(to) = to else { return Err(failed(97, "Can't complete SOCKS5 connection. (4)")) };
    let stream = net::connect(source, to, port).await.map_err(|_| match is_socks {
        Some(true) => failed(97, "Can't complete SOCKS5 connection. (5)"),
        _ => refused(),
    })?;
    let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let authority = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let agent = options.agent.as_deref().unwrap_or("curl/8.4.0");
    let mut request = format!("GET {target} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: {agent}\r\nAccept: */*\r\n");
    for header in &options.headers {
        request += &format!("{header}\r\n");
    }
    match net::exchange(stream, format!("{request}\r\n").as_bytes()).await {
        Ok(Some(reply)) => Ok(reply),
        Ok(None) => Err(failed(52, "Empty reply from server")),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err((Failure::new(18, "curl: (18) end of response with bytes missing"), 200))
        }
        Err(error) => Err(failed(56, &format!("Recv failure: {error}"))),
    }
}

fn hop(written: &str, user: Option<String>) -> Result<(String, Hop), (Failure, u16)> {
    let text = if written.contains("://") { written.to_owned() } else { format!("http://{written}") };
    let unsupported = || (Failure::new(7, format!("curl: (7) Unsupported proxy scheme for '{written}'")), 0);
    let wrong = |_| (Failure::new(5, format!("curl: (5) Unsupported proxy syntax in '{written}'")), 0);
    let url = Url::parse(&text).map_err(wrong)?;
    if !["http", "socks5", "socks5h"].contains(&url.scheme()) {
        return Err(unsupported());
    }
    let in_url = || format!("{}:{}", url.username(), url.password().unwrap_or_default());
    let login = user.or_else(|| (!url.username().is_empty()).then(in_url));
    // The parser drops the port of `http://` if it is the default port.
    let port = url.port().unwrap_or(if text.ends_with(":80") || text.ends_with(":80/") { 80 } else { 1080 });
    Ok((url.scheme().to_owned(), Hop { host: url.host_str().unwrap_or_default().to_owned(), port, login }))
}

fn write(options: &Options, body: &[u8]) -> io::Result<()> {
    match options.output.as_deref() {
        None | Some("-") => io::stdout().write_all(body),
        Some("/dev/null") => Ok(()),
        Some(path) => fs::write(path, body),
    }
}

fn parse(arguments: &[String]) -> Result<Options, Failure> {
    let help = "curl: try 'curl --help' or 'curl --manual' for more information";
    let wrong = |what: String| Failure::new(2, format!("curl: {what}\n{help}"));
    let mut options = Options::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let unknown = || wrong(format!("option {argument}: is unknown"));
        if argument.starts_with("--") {
            if FLAGS.iter().any(|(_, long)| long == argument) {
                options.flag(argument);
            } else if VALUED.iter().any(|(_, long)| long == argument) {
                let value = rest.next().ok_or_else(|| wrong(format!("option {argument}: requires parameter")))?;
                options.value(argument, value)?;
            } else {
                return Err(unknown());
            }
        } else if argument.len() > 1 && argument.starts_with('-') {
            for (at, letter) in argument[1..].char_indices() {
                let short = format!("-{letter}");
                if let Some((_, long)) = FLAGS.iter().find(|(known, _)| *known == short) {
                    options.flag(long);
                    continue;
                }
                let (_, long) = VALUED.iter().find(|(known, _)| *known == short).ok_or_else(unknown)?;
                let after = &argument[1 + at + letter.len_utf8()..];
                let given = if after.is_empty() { rest.next().map(String::as_str) } else { Some(after) };
                options.value(long, given.ok_or_else(|| wrong(format!("option {short}: requires parameter")))?)?;
                break;
            }
        } else {
            options.url = Some(argument.clone());
        }
    }
    if options.url.is_none() {
        return Err(wrong("(2) no URL specified".to_owned()));
    }
    Ok(options)
}

impl Options {
    fn flag(&mut self, long: &str) {
        match long {
            "--silent" => self.silent = true,
            "--show-error" => self.show_error = true,
            "--fail" => self.fail = true,
            _ => {}
        }
    }

    fn value(&mut self, long: &str, value: &str) -> Result<(), Failure> {
        let text = Some(value.to_owned());
        match long {
            "--max-time" | "--connect-timeout" => {
                let message = format!("curl: option {long}: expected a proper numerical parameter");
                let seconds = value.parse().map_err(|_| Failure::new(2, message))?;
                // On one machine, a connection succeeds or fails at once.
                if long == "--max-time" {
                    self.max_time = Some(seconds);
                }
            }
            "--output" => self.output = text,
            "--proxy" => self.proxy = text,
            "--proxy-user" => self.proxy_user = text,
            "--noproxy" => value.clone_into(&mut self.no_proxy),
            "--write-out" => self.write_out = text,
            "--header" => self.headers.push(value.to_owned()),
            _ => self.agent = text,
        }
        Ok(())
    }
}
