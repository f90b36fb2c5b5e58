//! Test vectors that were computed by other programs.

use super::{AccountKeys, Signable};
use toolwarrant::Timestamp;
use toolwarrant::text::Secret;

const HOST: &str = "api.vmoscloud.com";
const BODY: &str = r#"{"padCodes":["AC32010230001"]}"#;
const AT: Timestamp = Timestamp(1_767_323_045_000);

fn keys(access_key: &str, secret_key: &str) -> AccountKeys {
    AccountKeys { access_key: access_key.to_owned(), secret_key: Secret::new(secret_key.to_owned()) }
}

fn usual() -> AccountKeys {
    keys("AKTEST0123456789", "SKTEST9876543210")
}

fn request<'a>(path: &'a str, body: &'a str, at: Timestamp) -> Signable<'a> {
    Signable { host: HOST, path, body, at }
}

#[test]
fn v4_signs_as_the_vectors_say() {
    for (body, expected) in [
        (BODY, "4ebf810c78da5997490026aab063fb8afd5d9ad6084c833c9c00f10f78646474"),
        ("", "22a4ad145185de6586c3cd44833ccb01f9536a7502225d5eb5e4c65342c3957e"),
        ("page=1&rows=10", "0af310e900b3c049b5b05dba004fdb111494dea2bea157b81f216836ba132ab3"),
    ] {
        assert_eq!(usual().v4(request("/any", body, AT)), expected, "{body}");
    }
    // The test of an independent client.
    let body = r#"{"padCodes":["PAD1"],"scriptContent":"echo ok"}"#;
    let signature = keys("access", "secret").v4(request("", body, Timestamp(1_767_225_600_000)));
    assert_eq!(signature, "46c470f35306d8b438dabba3353de50df648d98042c5e34fe8d664c814d3f9e0");
}

#[test]
fn v2_signs_as_the_vectors_say() {
    for (path, body, expected) in [
        ("/vcpcloud/api/padApi/restart", BODY, "ae0d706e273047dd177226a8292f794db4d750e3af8846722db523398227a208"),
        ("/vcpcloud/api/padApi/asyncCmd", "", "6c5b2cf2459a7467a7082875e48721d423d0f5f184f80aa3f1f43ebe3fffe91e"),
        (
            "/vcpcloud/api/padApi/getProxys",
            "page=1&rows=10",
            "f250068d1ae25565b9b6eb42cc8463f243ea20e74df76ffa7df097364caaddc7",
        ),
    ] {
        assert_eq!(usual().v2(request(path, body, AT)), expected, "{path}");
    }
    // The vendor's published example.
    let published =
        request("/vcpcloud/api/padApi/padInfo", r#"{"padCode":"AC32010601132"}"#, Timestamp(1_747_555_200_000));
    assert_eq!(
        keys("any", "9cucpjoyn4xxmkhj3q9el3ce").v2(published),
        "483a4999d303307ef1b8b078b51e03fa0556547729c8a3c1470d2caf63e5f350"
    );
}
