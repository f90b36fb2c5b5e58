//! The hosts that a client may set as a phone's proxy, and the spelling that the phone gets.

use crate::harness::cast;
use serde_json::json;

#[tokio::test]
async fn the_host_that_was_checked_is_the_one_that_the_phone_uses() {
    let (server, key, _) = cast().await;
    for (sent, used) in [
        ("[::ffff:8.8.8.8]", "8.8.8.8"),
        ("[2001:DB8:0::1]", "2001:db8::1"),
        ("Proxy.Example.COM.", "proxy.example.com"),
    ] {
        let proxy = json!({"device_id": "phone-0000001", "scheme": "socks5", "host": sent, "port": 1080});
        let task = server.call(&key, "set_proxy", proxy).await.expect("accepted");
        assert_eq!(server.end(&key, &task["task_id"]).await["status"], "success", "{sent}");
        let phone = server.call(&key, "get_device", json!({"device_id": "phone-0000001"})).await.expect("a phone");
        assert_eq!(phone["proxy"]["host"], used);
    }
}

#[tokio::test]
async fn names_and_ranges_that_are_not_public_are_refused_and_nothing_is_sent() {
    let (server, key, _) = cast().await;
    for host in ["proxy.internal", "printer.local", "a.b.svc", "198.18.0.1", "192.0.0.8", "64:ff9b:1::808:808"] {
        let proxy = json!({"device_id": "phone-0000001", "scheme": "socks5", "host": host, "port": 1080});
        let refused = server.call(&key, "set_proxy", proxy).await.expect_err("refused");
        let message = refused["message"].as_str().expect("text");
        assert!(message.contains(host) && message.contains("is in a private network"), "{message}");
    }
    let ambiguous = json!({"device_id": "phone-0000001", "scheme": "socks5", "host": "0010.0.0.8", "port": 1080});
    let refused = server.call(&key, "set_proxy", ambiguous).await.expect_err("refused");
    assert!(refused["message"].as_str().expect("text").contains("can be read as another address"), "{refused}");
    let loopback = json!({"device_id": "phone-0000001", "scheme": "socks5", "host": "ip6-localhost", "port": 1080});
    let refused = server.call(&key, "set_proxy", loopback).await.expect_err("refused");
    assert!(refused["message"].as_str().expect("text").contains("is loopback"), "{refused}");
    assert_eq!(server.engine.in_flight(), 0);
}
