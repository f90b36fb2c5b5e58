//! The tools of toybox, by their own names or after `toybox`.

use super::phone::{ALWAYS, Failure, Phone};
use crate::host::ActEnd;
use crate::net::{self, Reply};
use crate::traffic::Way;
use std::fs;
use std::io::{self, Write as _};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const DF: &str = "\
Filesystem       1K-blocks     Used Available Use% Mounted on
/dev/block/dm-5  115249236 12000000 103249236  11% /data
";

pub(super) async fn run(phone: &Phone, name: &str, arguments: &[String]) -> Result<(), Failure> {
    let has = |tool: &str| phone.tools.iter().any(|known| known == tool);
    match (name, arguments) {
        ("cat", _) => cat(phone, arguments),
        // All files of a pad have one owner.
        ("chown", _) => Ok(()),
        ("df", _) => print_text(DF),
        ("getprop", _) => getprop(phone, arguments),
        ("grep", _) => grep(phone, arguments),
        ("mv", [from, to]) => fs::rename(from, to).map_err(|error| Failure::new(1, format!("mv: {from}: {error}"))),
        ("rm", [flag, paths @ ..]) if flag == "-f" => {
            paths.iter().for_each(|path| drop(fs::remove_file(path)));
            Ok(())
        }
        ("setprop", _) => setprop(phone, arguments).await,
        ("sleep", _) => sleep(arguments).await,
        ("tail", _) => tail(phone, arguments),
        ("wget", _) if has("wget") => wget(phone, arguments).await,
        ("nc" | "netcat", _) if has("nc") => nc(phone, arguments).await,
        ("toybox", [tool, arguments @ ..]) if tool != "toybox" => Box::pin(run(phone, tool, arguments)).await,
        ("toybox", _) => {
            let more = ["nc", "wget"].into_iter().filter(|tool| has(tool));
            let tools: Vec<_> = ALWAYS.into_iter().filter(|tool| *tool != "toybox").chain(more).collect();
            print_text(&format!("{}\n", tools.join(" ")))
        }
        _ => Err(Failure::new(127, format!("toybox: Unknown command {name} (see \"toybox --help\")"))),
    }
}

fn read(phone: &Phone, tool: &str, path: &str) -> Result<Vec<u8>, Failure> {
    let failed = |what: &str| Failure::new(1, format!("{tool}: {path}: {what}"));
    match phone.files.get(path) {
        Some(text) => Ok(text.clone().into_bytes()),
        None if path == "-" => {
            io::read_to_string(io::stdin()).map(String::into_bytes).map_err(|error| failed(&error.to_string()))
        }
        None if path.starts_with("/proc/") || path.starts_with("/sys/") => Err(failed("No such file or directory")),
        None => fs::read(path).map_err(|_| failed("No such file or directory")),
    }
}

fn print_text(text: &str) -> Result<(), Failure> {
    let _ = io::stdout().write_all(text.as_bytes());
    Ok(())
}

fn cat(phone: &Phone, arguments: &[String]) -> Result<(), Failure> {
    let mut ended = Ok(());
    let stdin = ["-".to_owned()];
    for path in if arguments.is_empty() { &stdin } else { arguments } {
        match read(phone, "cat", path) {
            // The reader may have closed the pipe.
            Ok(text) => drop(io::stdout().write_all(&text)),
            Err(failure) => {
                eprintln!("{}", failure.message);
                ended = Err(Failure::new(1, ""));
            }
        }
    }
    ended
}

fn getprop(phone: &Phone, arguments: &[String]) -> Result<(), Failure> {
    match arguments {
        [] => phone.properties.iter().for_each(|(name, value)| println!("[{name}]: [{value}]")),
        [name, rest @ ..] => {
            let unset = rest.first().map(String::as_str).unwrap_or_default();
            println!("{}", phone.properties.get(name).map_or(unset, String::as_str));
        }
    }
    Ok(())
}

/// Takes a text as pattern, with a `^` for the beginning of a line.
fn grep(phone: &Phone, arguments: &[String]) -> Result<(), Failure> {
    let Given { values, operands } = options("grep", arguments, &['c', 'q', 'w'], &[], &[])?;
    let [pattern, paths @ ..] = operands.as_slice() else { return Err(Failure::new(2, "grep: no REGEX")) };
    let has = |flag: char| values.iter().any(|(letter, _)| *letter == flag);
    let text = read(phone, "grep", paths.first().map_or("-", String::as_str))?;
    let text = String::from_utf8_lossy(&text);
    let is_found = |line: &&str| match pattern.strip_prefix('^') {
        Some(start) => line.starts_with(start),
        None if has('w') => line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == pattern),
        None => line.contains(pattern.as_str()),
    };
    let lines: Vec<&str> = text.lines().filter(is_found).collect();
    match (has('c'), has('q')) {
        (true, _) => print_text(&format!("{}\n", lines.len()))?,
        (_, true) => {}
        _ => print_text(&lines.iter().map(|line| format!("{line}\n")).collect::<String>())?,
    }
    if lines.is_empty() { Err(Failure::new(1, "")) } else { Ok(()) }
}

fn tail(phone: &Phone, arguments: &[String]) -> Result<(), Failure> {
    let Given { values, operands } = options("tail", arguments, &[], &['n'], &[])?;
    let count = values.first().and_then(|(_, count)| count.parse().ok()).unwrap_or(10);
    let text = read(phone, "tail", operands.first().map_or("-", String::as_str))?;
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.iter().skip(lines.len().saturating_sub(count));
    print_text(&last.map(|line| format!("{line}\n")).collect::<String>())
}

/// Sets the only property that can be set, which restarts the phone.
async fn setprop(phone: &Phone, arguments: &[String]) -> Result<(), Failure> {
    let failed = |why: &str| Failure::new(1, format!("Failed to set property: {why}"));
    if arguments != ["sys.powerctl", "reboot,"] {
        return Err(failed("it is not known"));
    }
    let act: io::Result<ActEnd> = net::post(&phone.control, &format!("pads/{}/act/reboot", phone.pad), "").await;
    match act.map_err(|error| failed(&error.to_string()))?.status {
        Some(0) => Ok(()),
        status => Err(Failure::new(status.unwrap_or(1), "Failed to set property")),
    }
}

async fn sleep(arguments: &[String]) -> Result<(), Failure> {
    let seconds =
        arguments.first().and_then(|seconds| seconds.parse().ok()).and_then(|s| Duration::try_from_secs_f64(s).ok());
    let Some(seconds) = seconds else { return Err(Failure::new(1, "sleep: Needs 1 argument (see \"sleep --help\")")) };
    tokio::time::sleep(seconds).await;
    Ok(())
}

async fn wget(phone: &Phone, arguments: &[String]) -> Result<(), Failure> {
    let failed = |what: String| Failure::new(1, format!("wget: {what}"));
    let Given { values, operands } =
        options("wget", arguments, &['d', 'q'], &['O'], &[("output-document", 'O'), ("debug", 'd')])?;
    let [url] = operands.as_slice() else { return Err(failed("Needs 1 argument (see \"wget --help\")".to_owned())) };
    let Some(rest) = url.strip_prefix("http://") else { return Err(failed(format!("unsupported protocol: {url}"))) };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (host, port) = authority.split_once(':').unwrap_or((authority, "80"));
    let port: u16 = port.parse().map_err(|_| failed(format!("bad port: {port}")))?;
    // Like toybox, it sends the host without its port.
    let request =
        format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: toybox wget/0.8.11\r\nConnection: close\r\n\r\n");
    let reply = match reach(phone, host, port).await.map_err(failed)? {
        Reached::Told(reply) => reply,
        Reached::Stream(stream) => {
            let answered = net::exchange(stream, request.as_bytes()).await;
            answered.ok().flatten().ok_or_else(|| failed("response header too large".to_owned()))?
        }
    };
    if reply.status != 200 {
        return Err(failed(format!("response {}", reply.status)));
    }
    let last = path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("index.html");
    let written = match values.iter().find(|(letter, _)| *letter == 'O').map(|(_, path)| path.as_str()) {
        Some("-") => io::stdout().write_all(&reply.body),
        Some(path) => fs::write(path, &reply.body),
        None => fs::write(last, &reply.body),
    };
    written.map_err(|error| failed(error.to_string()))
}

/// Closes its side once stdin ends, like toybox's, and continues until the other side has closed
/// too.
async fn nc(phone: &Phone, arguments: &[String]) -> Result<(), Failure> {
    let failed = |what: String| Failure::new(1, format!("nc: {what}"));
    let Given { values, operands } = options("nc", arguments, &['4', 'n', 'v'], &['w', 'W', 'q'], &[])?;
    let [host, port] = operands.as_slice() else {
        return Err(failed("bad argument count (see \"nc --help\")".to_owned()));
    };
    let seconds =
        |wanted: char| values.iter().find(|(letter, _)| *letter == wanted).and_then(|(_, value)| value.parse().ok());
    let port: u16 = port.parse().map_err(|_| failed(format!("bad port: {port}")))?;
    let mut request = Vec::new();
    let is_proxy = net::resolve(host).is_some_and(|address| !address.is_loopback());
    let reached =
        async { if is_proxy { reach_proxy(phone, host, port).await } else { reach(phone, host, port).await } };
    let reached = net::within(seconds('w'), reached).await;
    let mut stream = match reached.ok_or_else(|| failed("Timeout".to_owned()))?.map_err(failed)? {
        Reached::Told(reply) => {
            let _ = tokio::io::stdin().read_to_end(&mut request).await;
            print!("{}{}", reply.head, String::from_utf8_lossy(&reply.body));
            return Ok(());
        }
        Reached::Stream(stream) => stream,
    };
    let (mut read, mut write) = stream.split();
    let send = async {
        let (mut stdin, mut piece) = (tokio::io::stdin(), [0; 4_096]);
        while let Ok(count @ 1..) = stdin.read(&mut piece).await {
            if write.write_all(&piece[..count]).await.is_err() {
                return;
            }
        }
        let _ = write.shutdown().await;
        if let Some(quit) = seconds('q') {
            net::within(Some(quit), std::future::pending::<()>()).await;
        } else {
            std::future::pending::<()>().await;
        }
    };
    let receive = async {
        let (mut stdout, mut piece) = (tokio::io::stdout(), [0; 4_096]);
        while let Some(Ok(count @ 1..)) = net::within(seconds('W'), read.read(&mut piece)).await {
            let _ = stdout.write_all(&piece[..count]).await;
            let _ = stdout.flush().await;
        }
    };
    tokio::select! { () = send => (), () = receive => () }
    Ok(())
}

enum Reached {
    Stream(TcpStream),
    Told(Reply),
}

async fn reach(phone: &Phone, host: &str, port: u16) -> Result<Reached, String> {
    let to = net::resolve(host).ok_or_else(|| format!("{host}:{port}: No address associated with hostname"))?;
    match phone.way(host, port, None).await.map_err(|error| error.to_string())? {
        Way::From { source } => {
            let stream = net::connect(source, to, port).await;
            Ok(Reached::Stream(stream.map_err(|_| "connect: Connection refused".to_owned())?))
        }
        Way::Told { body } => Ok(Reached::Told(net::reply_text(&body))),
        Way::NoLogin | Way::Dead => Err("connect: Connection reset by peer".to_owned()),
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

#[derive(Debug, Default)]
struct Given {
    values: Vec<(char, String)>,
    operands: Vec<String>,
}

fn options(
    name: &str,
    arguments: &[String],
    flags: &[char],
    valued: &[char],
    long: &[(&str, char)],
) -> Result<Given, Failure> {
    let unknown = |what: &str| Failure::new(1, format!("{name}: Unknown option '{what}' (see \"{name} --help\")"));
    let missing = |what: char| Failure::new(1, format!("{name}: Missing argument to '{what}' (see \"{name} --help\")"));
    let mut given = Given::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            given.operands.extend(rest.by_ref().cloned());
        } else if let Some(word) = argument.strip_prefix("--") {
            let (word, value) = word.split_once('=').map_or((word, None), |(word, value)| (word, Some(value)));
            let (_, letter) = long.iter().find(|(known, _)| *known == word).ok_or_else(|| unknown(word))?;
            if valued.contains(letter) {
                let value = value.or_else(|| rest.next().map(String::as_str)).ok_or_else(|| missing(*letter))?;
                given.values.push((*letter, value.to_owned()));
            }
        } else if argument.len() > 1 && argument.starts_with('-') {
            for (at, letter) in argument.char_indices().skip(1) {
                if flags.contains(&letter) {
                    given.values.push((letter, String::new()));
                } else if valued.contains(&letter) {
                    let after = &argument[at + letter.len_utf8()..];
                    let value = if after.is_empty() { rest.next().map(String::as_str) } else { Some(after) };
                    given.values.push((letter, value.ok_or_else(|| missing(letter))?.to_owned()));
                    break;
                } else {
                    return Err(unknown(&letter.to_string()));
                }
            }
        } else {
            given.operands.push(argument.clone());
        }
    }
    Ok(given)
}
