//! Readings on connections that the phone opens, and in both families of addresses.

use super::*;
use async_trait::async_trait;
use std::net::Ipv6Addr;
use tokio::net::TcpStream;

struct LocalDial;

#[async_trait]
impl Dial for LocalDial {
    async fn dial(&self, _: &DeviceId, host: &str, port: u16) -> Result<DialedConnection, Unreachable> {
        let stream = TcpStream::connect((host, port)).await;
        stream.map(|stream| Box::new(stream) as DialedConnection).map_err(|error| Unreachable(error.to_string().into()))
    }
}

#[tokio::test]
async fn on_connections_of_the_phone_a_proxy_is_read_with_its_login_and_at_a_name_and_no_command_has_it() {
    let running = Running::start();
    let exit = [127, 0, 0, 5];
    let shown = Some(Through::Phone(exit.into()));
    for (scheme, host, manner, login, through) in [
        ("socks5", "127.0.0.1", Manner::Honest, "", shown),
        ("socks5", "localhost", Manner::Demands("u:p"), "u:p", shown),
        ("http", "localhost", Manner::Demands("u:p"), "u:p", shown),
        ("socks5", "127.0.0.1", Manner::Demands("u:p"), "u:x", None),
        ("http", "127.0.0.1", Manner::Lies, "u:p", None),
        ("http", "127.0.0.1", Manner::Babbles, "u:p", None),
        ("socks5", "127.0.0.1", Manner::Refuses, "", None),
    ] {
        let (at, _, _tasks) = run_proxy(manner, exit).await;
        let ran = Mutex::default();
        let staged = StagedPhone { ordinary: &[OWN], through: [&[EXIT], &[EXIT]], prints: "curl", ran };
        let proxy = with_login(proxy(scheme, host, at.port()), Some(login));
        let (exits, _) = running.readings().read(&staged, Some(&LocalDial), &proxy).await;
        assert_eq!(exits.unwrap(), Exits::of(OWN, through), "{scheme} {manner:?} {login}");
        let ran = staged.ran.lock().unwrap();
        assert!(!ran.contains("u:") && !ran.contains("-x"), "{ran}");
    }
}

#[tokio::test]
async fn a_proxy_that_leaves_out_a_family_is_no_success_if_both_are_observed() {
    let listener = CallbackListener::bind("[::]:0".parse().unwrap(), Random::System);
    // Not every machine has IPv6.
    let Ok((listener, echo)) = listener else { return };
    let port = listener.address().unwrap().port();
    let served = tokio::spawn(listener.serve(std::future::pending()));
    let (at, _, _tasks) = run_proxy(Manner::Honest, [127, 0, 0, 3]).await;
    let proxy = proxy("socks5", "localhost", at.port());
    let (whole, leak): (Askers, Askers) = (&[EXIT], &[EXIT, IpAddr::V6(Ipv6Addr::LOCALHOST)]);
    let (v4, v6) = (format!("http://127.0.0.1:{port}"), format!("http://[::1]:{port}"));
    for (urls, ordinary, verdict) in [
        (format!("{v4},{v6}"), whole, Verdict::Present),
        (format!("{v4},{v6}"), leak, Verdict::Unreadable),
        (v4.clone(), leak, Verdict::Present),
    ] {
        let echo = Some((echo.clone(), urls.parse().unwrap()));
        let readings = PhoneReadings { echo, random: Random::from_seed(1), by_server: None };
        let staged = StagedPhone { ordinary, through: [&[], &[]], prints: "curl", ran: Mutex::default() };
        let exits = readings.read(&staged, Some(&LocalDial), &proxy).await.0.unwrap();
        assert_eq!(exits.verdict(&proxy, Some(OWN)), verdict, "{urls} {ordinary:?}: {exits:?}");
    }
    for urls in
        ["", "http://a,http://b", "http://127.0.0.1,http://127.0.0.2", "http://a,http://[::1]", "http://1.2.3.4,"]
    {
        assert!(urls.parse::<CallbackUrls>().is_err(), "{urls}");
    }
    served.abort();
}
