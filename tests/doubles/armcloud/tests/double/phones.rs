//! A phone's shell: its tools, the source addresses of its requests, and its files.

use crate::harness::{Double, Echo};
use armcloud_double::addresses::{of_pad, of_proxy, of_rotating_proxy};
use serde_json::{Value, json};

fn set_proxy() -> Value {
    json!({"enable": true, "ip": "203.0.113.7", "port": 1080, "account": "user", "password": "secret", "proxyName": "socks5"})
}

/// An ordinary request with each tool, to the echo at `URL`, `HOST` and `PORT`.
const REQUESTS: [(&str, &str); 4] = [
    ("curl", "curl -sS -m 5 URL"),
    ("toybox wget", "toybox wget -q -O - URL"),
    ("wget", "wget -O - URL"),
    (
        "nc",
        "{ printf 'GET /once HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n'; sleep 0.2; } | nc -w 5 HOST PORT | cat",
    ),
];

fn to(echo: &Echo, script: &str) -> String {
    let port = echo.address.port().to_string();
    script.replace("URL", &echo.url()).replace("HOST", "127.0.0.1").replace("PORT", &port)
}

#[tokio::test]
async fn each_tool_leaves_from_the_pads_own_address_and_from_the_proxys_where_one_is_set() {
    let (double, echo) = (Double::start(&[]).await, Echo::start().await);
    let pad = &double.pads[3];
    for (tool, script) in REQUESTS {
        let seen = double.shell(pad, &to(&echo, script)).await;
        assert!(seen.ends_with(&of_pad(3).to_string()), "{tool}: {seen}");
    }
    let task = double.submit("setProxy", pad, set_proxy()).await;
    double.wait_for_end(task).await;
    for (tool, script) in REQUESTS {
        let seen = double.shell(pad, &to(&echo, script)).await;
        assert!(seen.ends_with(&of_proxy("203.0.113.7", 1080).to_string()), "{tool}: {seen}");
    }
    let bypass = json!({"enable": true, "ip": "203.0.113.7", "port": 1080, "bypassIpList": ["127.0.0.1"]});
    let task = double.submit("setProxy", pad, bypass).await;
    double.wait_for_end(task).await;
    assert_eq!(double.shell(pad, &to(&echo, REQUESTS[0].1)).await, of_pad(3).to_string());
    let other = double.shell(&double.pads[4], &to(&echo, REQUESTS[0].1)).await;
    assert_eq!(other, of_pad(4).to_string());
    assert!(echo.seen.lock().unwrap()[0].contains("GET /once HTTP/1.1\r\n"));
}

#[tokio::test]
async fn curl_does_what_an_ordinary_command_asks_of_it_and_fails_as_the_real_one() {
    let (double, echo) = (Double::start(&[]).await, Echo::start().await);
    let named = of_proxy("198.51.100.9", 3128).to_string();
    let own = of_pad(0).to_string();
    let refused = "curl: (7) Failed to connect to 127.0.0.1 port 1: Connection refused\n7";
    let cases = [
        ("curl -sS -m 5 -x socks5h://198.51.100.9:3128 URL", named.as_str()),
        ("curl -sS -m 5 -x http://198.51.100.9:3128 URL", &named),
        ("curl -sS -m5 --proxy socks5://u:p@198.51.100.9:3128 URL", &named),
        ("curl -sS -x socks5h://198.51.100.9:3128 --noproxy '*' URL", &own),
        ("curl -s -o /dev/null -w '%{http_code}' URL", "200"),
        ("curl -sSo kept URL && cat kept", &own),
        (
            "curl -sS http://127.0.0.1:1/; echo $?",
            "curl: (7) Failed to connect to 127.0.0.1 port 1: Connection refused\n7\n",
        ),
        ("curl -s http://127.0.0.1:1/; printf %s $?", "7"),
        ("curl -sS http://127.0.0.1:1/ -w '%{http_code}'; printf %s $?", &format!("000{refused}")),
        ("curl -s http://nowhere.test/; printf %s $?", "6"),
        ("curl -s http://192.0.2.1/; printf %s $?", "7"),
        ("curl -s https://127.0.0.1/; printf %s $?", "1"),
        (
            "curl -s --no-such URL; printf %s $?",
            "curl: option --no-such: is unknown\ncurl: try 'curl --help' or 'curl --manual' for more information\n2",
        ),
        ("command -v curl > /dev/null && printf yes", "yes"),
    ];
    for (script, expected) in cases {
        let output = double.shell(&double.pads[0], &to(&echo, script)).await;
        let same =
            output == expected || output.chars().filter(|c| *c != '\n').eq(expected.chars().filter(|c| *c != '\n'));
        // The stdout and stderr of one tool may come in either order.
        let mixed = script.contains("-w '%{http_code}';") && output.len() == expected.len();
        assert!(same || mixed, "{script}: {output}");
    }
}

#[tokio::test]
async fn a_request_that_is_never_answered_ends_at_its_limit() {
    let double = Double::start(&[]).await;
    let mute = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", mute.local_addr().unwrap());
    assert_eq!(double.shell(&double.pads[0], &format!("curl -s -m 0.2 {url}; printf %s $?")).await, "28");
}

#[tokio::test]
async fn files_and_properties_are_the_pads_own_and_show_a_start() {
    let double = Double::start(&[]).await;
    let pad = &double.pads[0];
    let read = "cat /proc/sys/kernel/random/boot_id /proc/1/stat; getprop ro.build.version.release";
    let before = double.shell(pad, read).await;
    let task = double.submit("restart", pad, json!({})).await;
    double.wait_for_end(task).await;
    double.until("userPadList", &json!({"padCode": pad}), |answer| answer["data"][0]["cvmStatus"] == 100).await;
    let after = double.shell(pad, read).await;
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (before, after) = (lines(&before), lines(&after));
    assert_eq!(before[0], double.truth(pad).await["boot_id"]);
    assert_eq!((&before[0], &before[2]), (&after[0], &after[2]));
    let start =
        |stat: &str| stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().parse::<u64>().unwrap();
    assert!(start(&after[1]) > start(&before[1]), "{before:?} {after:?}");
    assert_eq!(
        double.shell(&double.pads[1], "cat /proc/sys/kernel/random/boot_id").await.trim(),
        before[0],
        "of one host"
    );
    assert!(double.shell(&double.pads[9], "cat /proc/uptime").await.contains('.'));
    let missing = double.shell(pad, "cat /proc/version nothing; printf %s $?").await;
    assert_eq!(missing, "cat: /proc/version: No such file or directory\ncat: nothing: No such file or directory\n1");
}

#[tokio::test]
async fn a_tool_that_a_pad_does_not_have_is_not_found() {
    let double = Double::start(&[]).await;
    let pad = &double.pads[0];
    let found = "for tool in curl wget nc cat id; do command -v $tool > /dev/null && printf '%s ' $tool; done; printf %s $PATH > /dev/null";
    let cases = [
        (json!(["curl", "wget", "nc"]), "curl wget nc cat "),
        (json!(["wget", "nc"]), "wget nc cat "),
        (json!(["nc"]), "nc cat "),
        (json!([]), "cat "),
    ];
    for (tools, expected) in cases {
        double.set(pad, json!({"tools": tools})).await;
        assert_eq!(double.shell(pad, found).await, expected);
    }
    assert!(double.shell(pad, "toybox wget; printf %s $?").await.ends_with("127"));
    double.set(pad, json!({})).await;
    assert!(double.shell(pad, "toybox").await.contains("wget"));
    assert_eq!(double.shell(pad, "wget -z x; printf %s $?").await, "wget: Unknown option 'z' (see \"wget --help\")\n1");
    assert_eq!(double.shell(pad, "nc -l; printf %s $?").await, "nc: Unknown option 'l' (see \"nc --help\")\n1");
}

#[tokio::test]
async fn what_a_script_leaves_running_ends_with_it_and_one_that_hangs_is_killed() {
    let double = Double::start(&[]).await;
    let pad = &double.pads[0];
    assert_eq!(double.shell(pad, "sleep 50 & printf done").await, "done");
    double.set(pad, json!({"shell_limit_ms": 300})).await;
    let task = double.submit("asyncCmd", pad, json!({"scriptContent": "sleep 50"})).await;
    assert_eq!(double.wait_for_end(task).await["taskStatus"], -4);
}

#[tokio::test]
async fn proxies_behave_as_they_are_switched() {
    let (double, echo) = (Double::start(&[]).await, Echo::start().await);
    let (own, exit) = (of_pad(2).to_string(), of_proxy("203.0.113.7", 1080).to_string());
    let pad = &double.pads[2];
    let task = double.submit("setProxy", pad, set_proxy()).await;
    double.wait_for_end(task).await;
    let plain = "curl -sS -m 5 URL; printf %s $?";
    let empty = "curl: (52) Empty reply from server\n52";
    let through = "curl -s -m 5 -x socks5h://203.0.113.7:1080 URL; printf %s $?";
    let cases = [
        (json!({"shell_ignores_proxy": true}), plain, format!("{own}0")),
        (json!({"proxy_login": "user:secret"}), plain, format!("{exit}0")),
        (json!({"proxy_login": "user:other"}), plain, empty.to_owned()),
        (json!({"proxy_login": "user:secret"}), through, "97".to_owned()),
        (json!({"proxy_lies": "192.0.2.55"}), plain, "192.0.2.550".to_owned()),
        (json!({"proxy_dead": true}), plain, empty.to_owned()),
        (json!({"forwarder": "127.99.0.1"}), plain, "127.99.0.10".to_owned()),
        (json!({"own_address": "127.99.0.2"}), plain, format!("{exit}0")),
        (json!({"own_address": "127.99.0.2", "shell_ignores_proxy": true}), plain, "127.99.0.20".to_owned()),
        (json!({"proxy_dead": {"value": true, "calls": 1}}), "curl -s URL; curl -s URL", exit.clone()),
    ];
    for (switches, script, expected) in cases {
        double.set(pad, switches.clone()).await;
        assert_eq!(double.shell(pad, &to(&echo, script)).await, expected, "{switches}");
    }
    double.set(pad, json!({"proxy_rotates": true})).await;
    for n in 0..3 {
        let exit = of_rotating_proxy("203.0.113.7", 1080, n).to_string();
        assert_eq!(double.shell(pad, &to(&echo, "curl -s URL")).await, exit);
    }
    let requests = echo.seen.lock().unwrap().len();
    double.set(pad, json!({"proxy_lies": "192.0.2.55"})).await;
    double.shell(pad, &to(&echo, "curl -s URL; wget -O - URL")).await;
    assert_eq!(echo.seen.lock().unwrap().len(), requests, "a proxy that lies reaches nobody");
    double.set(pad, json!({"proxy_forwards": true})).await;
    for (tool, script) in REQUESTS {
        double.shell(pad, &to(&echo, script)).await;
        let head = echo.seen.lock().unwrap().last().unwrap().clone();
        assert!(head.contains(&format!("\r\nX-Forwarded-For: {own}\r\n")), "{tool}: {head}");
    }
}
