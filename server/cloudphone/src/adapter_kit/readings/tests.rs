//! The value of readings as evidence, row by row: the real event, the party that lied, and the
//! verdict.

mod connections;

use super::through::tests::{Manner, reader, run_proxy};
use super::*;
use crate::adapter_kit::shell::tests::{LocalShell, phone};
use crate::phones::contract::{Credential, Host, Port, ProxyScheme};
use crate::phones::port::PhoneStart;
use async_trait::async_trait;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::task::JoinHandle;
use toolwarrant::http::CallbackListener;
use toolwarrant::tasks::{Provability, Verdict};
use toolwarrant::text::Secret;

pub(super) struct Running {
    pub(super) echo: CallbackPaths,
    pub(super) url: CallbackUrl,
    served: JoinHandle<()>,
}

impl Running {
    pub(super) fn start() -> Self {
        let (listener, echo) = CallbackListener::bind("127.0.0.1:0".parse().unwrap(), Random::System).unwrap();
        let url = format!("http://{}", listener.address().unwrap()).parse().unwrap();
        Self { echo, url, served: tokio::spawn(listener.serve(std::future::pending())) }
    }

    pub(super) fn readings(&self) -> PhoneReadings {
        let echo = Some((self.echo.clone(), self.url.clone().into()));
        PhoneReadings { echo, random: Random::from_seed(1), by_server: None }
    }
}

impl PhoneReadings {
    async fn read(
        &self,
        shell: &dyn Shell,
        dial: Option<&dyn Dial>,
        proxy: &SetProxyArgs,
    ) -> (Result<Exits, Unreachable>, Option<Tool>) {
        let mut tool = Some(Tool::Curl);
        (self.exits((shell, dial, &phone()), Some(proxy), &mut tool).await, tool)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.served.abort();
    }
}

pub(super) fn proxy(scheme: &str, host: &str, port: u16) -> SetProxyArgs {
    SetProxyArgs {
        device_id: phone(),
        scheme: ProxyScheme::ALL.iter().copied().find(|known| known.as_str() == scheme).unwrap(),
        host: Host::new(host).unwrap(),
        port: Port::new(port.into()).unwrap(),
        username: None,
        password: None,
        idempotency_key: None,
    }
}

pub(super) fn with_login(proxy: SetProxyArgs, login: Option<&str>) -> SetProxyArgs {
    let Some((name, password)) = login.and_then(|login| login.split_once(':')) else { return proxy };
    SetProxyArgs {
        username: Credential::new(name).ok(),
        password: Credential::new(password).ok().map(Secret::new),
        ..proxy
    }
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn an_absence_needs_a_reading_through_the_proxy_that_can_be_compared_and_a_presence_needs_its_address() {
    use Verdict::{Absent, Present, Undecidable, Unreadable};
    let (own, exit, other) = ("192.0.2.1", "198.51.100.7", "203.0.113.9");
    let (own6, exit6) = ("2001:db8::1", "2001:db8::7");
    let by_phone = |text: &str| Some(Through::Phone(address(text)));
    let by_server = |text: &str| Some(Through::Server(address(text)));
    for (host, before, ordinary, through, verdict) in [
        ("proxy.example", own, exit, by_phone(exit), Present),
        ("proxy.example", own, own, by_phone(exit), Absent),
        ("proxy.example", own, other, by_phone(exit), Unreadable),
        ("proxy.example", own, exit, None, Unreadable),
        ("proxy.example", own, own, None, Unreadable),
        // The same proxy was in force before, or the phone shares its address, or a forwarder does.
        ("proxy.example", exit, exit, by_phone(exit), Undecidable),
        (exit, exit, exit, None, Undecidable),
        // A literal address is where the proxy accepts connections; its exit address may be
        // another.
        (exit, own, exit, None, Present),
        (exit, own, exit, by_phone(other), Unreadable),
        (exit, exit, exit, by_phone(other), Unreadable),
        (exit, own, own, None, Unreadable),
        (exit, own, own, by_phone(other), Absent),
        (exit, own, other, by_phone(other), Present),
        // Addresses of two families do not contradict each other: a proxy may have an exit in each.
        ("proxy.example", own, own, by_phone(exit6), Unreadable),
        ("proxy.example", own6, own6, by_phone(exit), Unreadable),
        ("proxy.example", own6, own6, by_phone(exit6), Absent),
        // The server may reach another proxy under the name.
        ("proxy.example", own, exit, by_server(exit), Present),
        ("proxy.example", own, own, by_server(exit), Unreadable),
        (other, own, own, by_server(exit), Absent),
        (other, own, own, by_server(exit6), Unreadable),
        ("::ffff:198.51.100.7", own, exit, None, Present),
    ] {
        let (ordinary_before, direct) = (Some(address(before)), Some(address(before)));
        let exits = Exits { direct, ..Exits::of(address(ordinary), through) };
        let proxy = proxy("socks5", host, 1080);
        let judged = exits.verdict(&proxy, ordinary_before);
        assert_eq!(judged, verdict, "{host}: {before} then {ordinary}, through {through:?}");
        // Nothing may leave beside the proxy in the other family.
        for (ordinary, through, may_be) in [(exit6, Some(exit6), true), (own6, Some(exit6), false), (own6, None, false)]
        {
            let other = Some(OtherExits { ordinary: address(ordinary), through: through.map(address) });
            let judged = Exits { other, ..exits }.verdict(&proxy, ordinary_before);
            let leaks = matches!(verdict, Present | Undecidable) && !may_be;
            assert_eq!(judged, if leaks { Unreadable } else { verdict }, "{host}: {before}");
        }
        // An earlier proxy may lead to the one that is set now, and go on from there to this very
        // address. The user of a phone with the same address can make requests leave from there.
        for (direct, is_shared) in [(None, false), (Some(address("192.0.2.250")), false), (direct, true)] {
            let judged = Exits { direct, is_shared, ..exits }.verdict(&proxy, ordinary_before);
            assert_eq!(judged, if verdict == Absent { Unreadable } else { verdict }, "{host}: {before}");
        }
        // Without an address from before the send, the phone's own one counts, and shows no
        // absence.
        let unread = if verdict == Absent { Unreadable } else { verdict };
        assert_eq!(exits.verdict(&proxy, None), unread, "{host}: {ordinary}, through {through:?}");
        let unknown = if matches!(unread, Present) { Undecidable } else { unread };
        assert_eq!(Exits { direct: None, ..exits }.verdict(&proxy, None), unknown, "{host}: {ordinary}");
        // So does the last one that was read: an earlier proxy may have the same exit.
        let last = Exits { former: Some(exits.ordinary), ..exits };
        assert_eq!(last.verdict(&proxy, None), unknown, "{host}: {ordinary}");
        assert_eq!(last.verdict(&proxy, ordinary_before), verdict, "{host}: {ordinary}");
    }
}

type Askers = &'static [IpAddr];

struct StagedPhone {
    ordinary: Askers,
    through: [Askers; 2],
    prints: &'static str,
    ran: Mutex<String>,
}

/// Leaves out the addresses of another family than that of the URL.
async fn ask(url: &str, askers: Askers) {
    let (authority, path) = url.split_once('/').unwrap();
    let to: SocketAddr = authority.parse().unwrap();
    for from in askers.iter().filter(|from| from.is_ipv4() == to.is_ipv4()) {
        let socket = if to.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.unwrap();
        socket.bind((*from, 0).into()).unwrap();
        let mut stream = socket.connect(to).await.unwrap();
        stream.write_all(format!("GET /{path} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
        stream.read_to_end(&mut Vec::new()).await.unwrap();
    }
}

fn urls_behind<'a>(script: &'a str, mark: &str) -> Vec<&'a str> {
    script.split(&format!("{mark}http://")).skip(1).map(|rest| rest.split('\'').next().unwrap()).collect()
}

#[async_trait]
impl Shell for StagedPhone {
    async fn run(&self, _: &DeviceId, script: &str) -> Result<String, Unreachable> {
        script.clone_into(&mut self.ran.lock().unwrap());
        for (url, askers) in urls_behind(script, "' '").iter().zip(self.through) {
            ask(url, askers).await;
        }
        ask(urls_behind(script, "g curl c '")[0], self.ordinary).await;
        let nonce = &script["echo ".len()..][..16];
        Ok(format!("{nonce}<\n{}\n{nonce}>0.", self.prints))
    }
}

const OWN: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const EXIT: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3));
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 4));

#[tokio::test]
async fn no_phone_and_no_proxy_gets_a_verdict_by_a_lie() {
    let running = Running::start();
    let nobody: Askers = &[];
    let (absent, present, unreadable) = ("Absent", "Present", "Unreadable");
    let lost = "a request of the phone did not arrive";
    let several = "a request of the phone arrived from several addresses";
    let no_program = "the phone has no program that makes a request";
    let (name, literal) = ("proxy.example", "127.0.0.3");
    for (what, host, login, prints, ordinary, through, verdict) in [
        ("the proxy works", name, "", "curl", &[EXIT] as Askers, [&[EXIT] as Askers, &[EXIT]], present),
        ("nothing happened", name, "", "curl", &[OWN], [&[EXIT], &[EXIT]], absent),
        ("it was in force before", name, "", "curl", &[OWN], [&[OWN], &[OWN]], "Undecidable"),
        ("the proxy answers for the echo", name, "", "curl", &[OWN], [nobody, nobody], unreadable),
        ("the proxy answers for one of both", name, "", "curl", &[OWN], [&[EXIT], nobody], unreadable),
        ("it does so for the phone's own request", name, "", "curl", nobody, [&[EXIT], &[EXIT]], lost),
        ("the phone prints an address", name, "", "203.0.113.9", &[OWN], [nobody, nobody], unreadable),
        ("it prints the proxy's address", name, "", "curl 127.0.0.3", &[OTHER], [&[EXIT], &[EXIT]], unreadable),
        ("the phone prints nothing", name, "", "", &[OWN], [nobody, nobody], unreadable),
        ("the proxy repeats a path from elsewhere", name, "", "curl", &[OWN], [&[EXIT, OTHER], &[EXIT]], unreadable),
        ("it repeats both from the same place", name, "", "curl", &[OWN], [&[EXIT, OTHER], &[EXIT, OTHER]], unreadable),
        ("it repeats the phone's own", name, "", "curl", &[OWN, OTHER], [&[EXIT], &[EXIT]], several),
        ("the exit rotates", name, "", "curl", &[OWN], [&[EXIT], &[OTHER]], unreadable),
        ("the exit rotates in force", name, "", "curl", &[EXIT], [&[EXIT], &[OTHER]], unreadable),
        ("the request left from elsewhere", name, "", "curl", &[OTHER], [&[EXIT], &[EXIT]], unreadable),
        ("there is no curl, and somebody asks", name, "", "toybox-wget", &[OWN], [&[EXIT], &[EXIT]], unreadable),
        ("there is no curl, and it works", name, "", "nc", &[EXIT], [nobody, nobody], unreadable),
        ("there is no curl, at an address", literal, "", "nc", &[EXIT], [nobody, nobody], present),
        ("there is no curl, and nothing happened", literal, "", "nc", &[OWN], [nobody, nobody], unreadable),
        ("a password", name, "u:p", "curl", &[EXIT], [nobody, nobody], unreadable),
        ("a password, at an address", literal, "u:p", "curl", &[EXIT], [nobody, nobody], present),
        ("a password, and nothing happened", literal, "u:p", "curl", &[OWN], [nobody, nobody], unreadable),
        ("a name without a password", literal, "u:", "curl", &[OWN], [nobody, nobody], unreadable),
        ("there is no program", name, "", "missing", nobody, [nobody, nobody], no_program),
    ] {
        let staged = StagedPhone { ordinary, through, prints, ran: Mutex::default() };
        let proxy = with_login(proxy("socks5", host, 1080), Some(login));
        let (exits, _) = running.readings().read(&staged, None, &proxy).await;
        let judged = match exits {
            Ok(exits) => {
                let exits = Exits { direct: Some(OWN), ..exits };
                format!("{:?}", exits.verdict(&proxy, Some(OWN)))
            }
            Err(Unreachable(why)) => why.as_str().to_owned(),
        };
        assert_eq!(judged, verdict, "{what}");
        let asks = staged.ran.lock().unwrap().contains("-x 'socks5h://");
        assert_eq!(asks, login.is_empty(), "{what}: {:?}", staged.ran);
    }
}

#[tokio::test]
async fn a_reading_that_the_server_takes_is_used_where_the_phone_cannot_and_nowhere_else() {
    let running = Running::start();
    let (exit, by_server) = ([127, 0, 0, 5], Some(Through::Server(address("127.0.0.5"))));
    let by_phone = Some(Through::Phone(EXIT));
    for (manner, login, prints, connects, through) in [
        (Manner::Demands("u:p"), "u:p", "curl", true, by_server),
        (Manner::Demands("u:p"), "u:x", "curl", false, None),
        (Manner::Lies, "u:p", "curl", true, None),
        (Manner::Honest, "", "nc", true, by_server),
        (Manner::Honest, "", "curl", false, by_phone),
    ] {
        let (at, heard, _tasks) = run_proxy(manner, exit).await;
        let phones: [Askers; 2] = if prints == "curl" { [&[EXIT], &[EXIT]] } else { [&[], &[]] };
        let staged = StagedPhone { ordinary: &[OWN], through: phones, prints, ran: Mutex::default() };
        let proxy = with_login(proxy("http", "127.0.0.1", at.port()), Some(login));
        let readings = PhoneReadings { by_server: Some(reader()), ..running.readings() };
        let (exits, _) = readings.read(&staged, None, &proxy).await;
        assert_eq!(exits.unwrap(), Exits::of(OWN, through), "{manner:?} {login} {prints}");
        assert_eq!(!heard.lock().unwrap().is_empty(), connects, "{manner:?} {login} {prints}");
        assert!(!staged.ran.lock().unwrap().contains("u:"), "{:?}", staged.ran);
    }
}

#[test]
fn provability_depends_on_the_proxy_and_on_the_machine_that_can_use_it() {
    let no_program = "the phone has no program that makes a request";
    let no_curl = "the phone has no program that asks through a proxy, and the proxy's host is a name";
    let password =
        "the proxy's host is a name, and nobody asks through it: a password never stands in a command on a phone";
    let (name, literal) = ("proxy.example", "198.51.100.7");
    for (scheme, host, login, tool, dials, by_server, expected) in [
        ("socks5", name, None, None, false, false, Provability::Both),
        ("socks5", name, None, Some(Tool::Curl), false, false, Provability::Both),
        ("http", name, None, Some(Tool::Curl), false, false, Provability::Both),
        ("http", name, None, Some(Tool::Wget), false, false, Provability::Nothing(no_curl)),
        ("http", literal, None, Some(Tool::Wget), false, false, Provability::Presence),
        ("http", name, None, Some(Tool::Wget), false, true, Provability::Presence),
        ("http", literal, None, Some(Tool::Nc), false, true, Provability::Both),
        ("socks5", name, Some("u:p"), Some(Tool::Curl), false, false, Provability::Nothing(password)),
        ("socks5", literal, Some("u:p"), Some(Tool::Curl), false, false, Provability::Presence),
        ("socks5", name, Some("u:"), None, false, false, Provability::Nothing(password)),
        ("socks5", name, Some(":p"), None, false, false, Provability::Nothing(password)),
        ("http", name, Some(":p"), None, false, false, Provability::Nothing(password)),
        ("http", name, Some("u:"), None, false, false, Provability::Nothing(password)),
        ("socks5", name, Some("u:p"), None, false, true, Provability::Presence),
        ("socks5", literal, Some("u:p"), None, false, true, Provability::Both),
        ("https", name, None, None, false, true, Provability::Nothing(password)),
        ("https", literal, None, Some(Tool::Curl), false, true, Provability::Presence),
        ("socks5", literal, None, Some(Tool::Missing), false, true, Provability::Nothing(no_program)),
        ("socks5", name, Some("u:p"), Some(Tool::Wget), true, false, Provability::Both),
        ("http", name, Some("u:p"), None, true, true, Provability::Both),
        ("https", name, None, Some(Tool::Nc), true, false, Provability::Nothing(password)),
        ("socks5", name, None, Some(Tool::Missing), true, false, Provability::Nothing(no_program)),
    ] {
        let proxy = with_login(proxy(scheme, host, 1080), login);
        let found = provability::of(&proxy, tool, dials, by_server);
        assert_eq!(found, expected, "{scheme} {host} {login:?} {tool:?} {dials} {by_server}");
    }
}

/// Writes a program in another process. Programs that other tests start would inherit a file that
/// this process has open for writing, and it could not be run.
fn program(folder: &Path, name: &str, text: &str) {
    let write = r#"printf '#!/bin/bash\n%s\n' "$1" > "$0" && chmod 700 "$0""#;
    let written = Command::new("/bin/sh").arg("-c").arg(write).arg(folder.join(name)).arg(text).status();
    assert!(written.unwrap().success());
}

/// Requests the URL in the last argument. [`NETCAT`] sends its input to the host and port there.
const FETCH: &str = r#"u=${@: -1}; u=${u#http://}; exec 3<>/dev/tcp/${u%%:*}/$(p=${u#*:}; echo ${p%%/*})
printf 'GET /%s HTTP/1.0\r\n\r\n' "${u#*/}" >&3; read -r line <&3"#;
const NETCAT: &str = r#"[ "$1" = -w ] || exit 1; exec 3<>/dev/tcp/$3/$4; while IFS= read -r line; do printf '%s\n' "$line" >&3; done; read -r line <&3"#;

#[tokio::test]
async fn a_phone_makes_its_requests_with_what_it_has() {
    let running = Running::start();
    let [curl, wget] =
        ["-s -m 8 -o /dev/null", "-O -"].map(|options| format!(r#"[[ "$*" == "{options} "* ]] || exit 2; {FETCH}"#));
    let toybox = |wget: &str, nc: &str| {
        format!(
            "case $1 in wget) shift; {wget};; nc) shift; {nc};; *) echo \"Unknown command $1\" >&2; exit 127;; esac"
        )
    };
    let (all, nc, none) = (toybox(&wget, NETCAT), toybox("exit 127", NETCAT), toybox("exit 127", "exit 127"));
    for (programs, tool, arrives) in [
        (&[("curl", curl.as_str()), ("toybox", &all), ("nc", "exit 1")] as &[(&str, &str)], Tool::Curl, true),
        (&[("toybox", &all), ("nc", "exit 1")], Tool::ToyboxWget, true),
        (&[("toybox", &nc), ("wget", &wget)], Tool::Wget, true),
        (&[("nc", NETCAT)], Tool::Nc, true),
        (&[("toybox", &nc)], Tool::ToyboxNc, true),
        (&[("toybox", &none)], Tool::Missing, false),
        (&[], Tool::Missing, false),
        (&[("curl", "exit 7"), ("nc", NETCAT)], Tool::Curl, false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        programs.iter().for_each(|(name, text)| program(folder.path(), name, text));
        let (shell, readings) = (LocalShell::new(folder.path()), running.readings());
        let (exits, used) = readings.read(&shell, None, &proxy("socks5", "proxy.example", 1080)).await;
        assert_eq!(exits.as_ref().ok().map(|exits| exits.ordinary), arrives.then(|| address("127.0.0.1")), "{tool:?}");
        // A program whose request does not arrive shows nothing of the phone.
        assert_eq!(used, (arrives || tool == Tool::Missing).then_some(tool), "{exits:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    program(folder.path(), "nc", NETCAT);
    let cut = LocalShell { way: |_| "Success".to_owned(), ..LocalShell::new(folder.path()) };
    let (exits, used) = running.readings().read(&cut, None, &proxy("http", "proxy.example", 80)).await;
    assert_eq!((exits.is_err(), used), (true, None), "its command did not run whole");
}

#[tokio::test]
async fn a_phone_asks_through_a_proxy_twice_and_is_told_nothing_but_urls_a_host_and_a_port() {
    let running = Running::start();
    for (scheme, host, provability) in [
        ("socks5", "proxy.example", "-x socks5h://proxy.example:1080 "),
        ("http", "2001:db8::7", "-x http://[2001:db8::7]:1080 "),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        // Requests through the proxy take longer than the ordinary request.
        let longer = "case $* in *-x*) for ((n = 0; n < 100000; n++)); do :; done;; esac";
        program(folder.path(), "curl", &format!("echo \"$@\" >> {}; {longer}; {FETCH}", log.display()));
        let shell = LocalShell::new(folder.path());
        let (exits, _) = running.readings().read(&shell, None, &proxy(scheme, host, 1080)).await;
        let own = address("127.0.0.1");
        assert_eq!(exits.unwrap(), Exits::of(own, Some(Through::Phone(own))));
        let through = fs::read_to_string(&log).unwrap().lines().filter(|line| line.contains(provability)).count();
        assert_eq!(through, 2);
        assert!(shell.ran.lock().unwrap().iter().all(|command| command.len() < 2_000), "{:?}", shell.ran);
    }
}

#[tokio::test]
async fn a_start_is_read_with_any_name_of_the_first_process_and_malformed_output_is_not() {
    const ID: &str = "9f2c41d0-6a4b-4c0e-8f53-0123456789ab";
    let fields = "S 0 1 1 0 -1 4194560 8 9 10 11 12 13 14 15 20 0 1 0 1234567 23 24 25";
    for (name, comm) in [("init", "init"), ("blanks and brackets", "a) S 0 (b"), ("a line break", "a\nb")] {
        let output = format!("{ID}\r\n1 ({comm}) {fields}");
        let start = |age| Some(PhoneStart { value: "9f2c41d0:1234567".to_owned(), on: None, age });
        assert_eq!(script::start_of(&output), start(None), "{name}");
        for (now, age) in [("1234999", Some(Duration::from_millis(4_320))), ("1234566", None), ("x", None)] {
            let own = format!("{output}\nnow\n4711 (cat) {}", fields.replace("1234567", now));
            assert_eq!(script::start_of(&own), start(age), "{name} {now}");
        }
    }
    let short = fields.split(" 1234567").next().unwrap();
    for nonsense in [
        String::new(),
        ID.to_owned(),
        format!("{ID}\n1 (init) {short}"),
        format!("{ID}\n1 (init) {}", fields.replace("1234567", "-1")),
        format!("{ID}\n2 (init) {fields}"),
        format!("{ID}\ncat: /proc/1/stat: Permission denied"),
        format!("cat: no such file\n1 (init) {fields}"),
        format!("{}\n1 (init) {fields}", ID.replace('-', "0")),
        format!("{}\n1 (init) {fields}", ID.replace("9f", "zz")),
        format!("{ID}0\n1 (init) {fields}"),
        format!("1 (init) {fields}\n{ID}"),
    ] {
        assert_eq!(script::start_of(&nonsense), None, "{nonsense}");
    }
    let output = run_whole(&LocalShell::new(Path::new("/bin")), &Random::from_seed(1), &phone(), START).await.unwrap();
    let PhoneStart { value: start, on: _, age } = script::start_of(&output).unwrap();
    assert!(age.is_some());
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    assert!(start.starts_with(&boot_id[..8]) && start.contains(':'), "{start}");
}

#[test]
fn an_echo_is_reached_at_a_host_and_a_port_and_nothing_more() {
    for (text, authority, host, port) in [
        ("http://203.0.113.7:8081", "203.0.113.7:8081", "203.0.113.7", 8081),
        ("http://203.0.113.7:8081/", "203.0.113.7:8081", "203.0.113.7", 8081),
        ("http://Echo.Example", "echo.example", "echo.example", 80),
        ("http://[2001:db8::1]:81", "[2001:db8::1]:81", "2001:db8::1", 81),
    ] {
        let url: CallbackUrl = text.parse().unwrap();
        assert_eq!((url.authority(), url.host.as_str(), url.port), (authority, host, port));
        assert_eq!(url.as_str(), format!("http://{authority}"));
    }
    for text in
        ["", "echo", "https://x:1", "http://u@x", "http://u:p@x", "http://x/a", "http://x/?a", "http://x/#a", "ftp://x"]
    {
        assert!(text.parse::<CallbackUrl>().is_err(), "{text}");
    }
}
