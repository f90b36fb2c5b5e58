//! The document of the contract: public, with a tag for its state, and named where a client begins.

use crate::harness::revisions::ask;
use crate::harness::shop::shop;
use crate::harness::{Tenant, contract, open_phones, phones};
use cloudphone::phones::contract::CATALOGUE;
use reqwest::Response;
use serde_json::{Value, json};
use toolwarrant_core::catalogue::PermissionSet;
use toolwarrant_core::revision::Revision;
use toolwarrant_gate::{digest, read_record, sha256};
use toolwarrant_reader::ContractRecord;

const PATH: &str = "/v1/contract.json";

fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name).map(|value| value.to_str().expect("text"))
}

#[tokio::test]
async fn the_contract_is_public_with_its_digest_and_a_strong_tag() {
    let (server, key) = open_phones().await;
    let url = server.url.replace("/mcp", PATH);
    let answer = server.http.get(&url).send().await.expect("an answer");
    assert_eq!((answer.status().as_u16(), header(&answer, "content-type")), (200, Some("application/json")));
    let tag = header(&answer, "etag").expect("a tag").to_owned();
    let text = answer.text().await.expect("text");
    assert_eq!(tag, format!("\"{}\"", sha256(&text)), "the tag is made of the whole document");

    let shown: Value = serde_json::from_str(&text).expect("JSON");
    let record = ContractRecord::of(&contract("spec"));
    assert_eq!(read_record(&text).expect("a record").facts, record.facts);
    assert_eq!(shown["digest"], digest(&record));
    let said = ["service", "version", "framework"].map(|member| shown[member].as_str().expect("text"));
    assert_eq!(said, ["service-cloudphone", CATALOGUE.service.version, env!("CARGO_PKG_VERSION")]);
    assert_eq!(shown["since"].is_null(), shown["changes"].is_null(), "without a release, nothing was compared");

    let others = [format!("W/{tag}"), format!("\"x\", {tag}"), "*".to_owned()];
    for held in std::iter::once(tag.clone()).chain(others) {
        let answer = server.http.get(&url).header("if-none-match", &held).send().await.expect("an answer");
        assert_eq!((answer.status().as_u16(), header(&answer, "etag")), (304, Some(&*tag)), "{held}");
        assert_eq!(answer.text().await.expect("text"), "");
    }
    for other in ["\"x\"", &tag[1..], ""] {
        let answer = server.http.get(&url).header("if-none-match", other).send().await.expect("an answer");
        assert_eq!(answer.status(), 200, "{other}");
    }
    assert_eq!(server.http.post(&url).send().await.expect("an answer").status(), 401);
    assert_eq!(server.v1(&server.sign(&key, "POST", PATH)).await.status, 405);
    assert_eq!(server.http.get(&url).bearer_auth("a:b").send().await.expect("an answer").status(), 401);
}

#[tokio::test]
async fn a_client_of_any_revision_is_told_version_and_digest_of_the_contract_at_the_beginning() {
    let all = || vec![Tenant::with(PermissionSet(u64::MAX))];
    for (server, keys) in [phones(all()).await, shop(all()).await] {
        let url = server.url.replace("/mcp", PATH);
        let answer = server.http.get(&url).send().await.expect("an answer");
        let shown: Value = serde_json::from_str(&answer.text().await.expect("text")).expect("JSON");
        for revision in Revision::ALL {
            let method = if revision.features().handshake { "initialize" } else { "server/discover" };
            let (_, begun) = ask(&server, &keys[0][0], revision, method, json!({})).await;
            let told = &begun["result"]["_meta"]["toolwarrant/contract"];
            let expected = json!({"version": shown["version"], "digest": shown["digest"], "url": PATH});
            assert_eq!(*told, expected, "{revision:?}");
            let own = &begun["result"]["serverInfo"];
            let server =
                if own.is_null() { &begun["result"]["_meta"]["io.modelcontextprotocol/serverInfo"] } else { own };
            assert_eq!(server["version"], "0", "the program's: {begun}");
        }
    }
}
