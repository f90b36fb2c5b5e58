//! Signs a request under `/v1` and sends it: `sign METHOD TARGET [BODY [IDEMPOTENCY_KEY]]`
//!
//! `TARGET` is the path from `/v1` on, with the query: `/v1/devices?limit=5`. A `BODY` that begins
//! with `@` names a file. The environment variables `API_KEY` and `API_SECRET` hold the key.
//! `API_URL` is the server, without a slash at the end. `TIMESTAMP` and `NONCE` serve only to
//! compare the result with a test vector. Crates: `getrandom`, `hmac`, `reqwest` (for https with
//! its default features), `sha2`, `tokio`.

use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Method, Request, Url, redirect};
use sha2::{Digest as _, Sha256};
use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

fn sign_request(method: &str, target: &str, body: Vec<u8>, idempotency_key: &str) -> Result<Request, Box<dyn Error>> {
    let server = env::var("API_URL").unwrap_or_else(|_| "http://127.0.0.1:8080".into());
    let key_id = env::var("API_KEY").map_err(|_| "API_KEY is not set")?;
    let secret = env::var("API_SECRET").map_err(|_| "API_SECRET is not set")?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
    let timestamp = env::var("TIMESTAMP").unwrap_or_else(|_| now.to_string());
    let random = [getrandom::u64()?, getrandom::u64()?];
    let nonce = env::var("NONCE").unwrap_or_else(|_| format!("{:016x}{:016x}", random[0], random[1]));
    // Sign the octets that are sent: `Url` encodes its input and resolves dots. Therefore read path
    // and query back from it.
    let url = Url::parse(&format!("{server}{target}"))?;
    let base = Url::parse(&server)?;
    let path = url.path().strip_prefix(base.path().trim_end_matches('/')).ok_or("the target leaves API_URL")?;
    let query = url.query().unwrap_or_default();
    let digest = hex(&Sha256::digest(&body));
    let canonical = ["CP1-HMAC-SHA256", &key_id, &timestamp, &nonce, method, path, query, idempotency_key, &digest];
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes())?.chain_update(canonical.join("\n"));
    let signature = hex(&mac.finalize().into_bytes());

    let mut request = Client::new().request(method.parse::<Method>()?, url);
    let headers = [("X-Api-Key", key_id), ("X-Timestamp", timestamp), ("X-Nonce", nonce), ("X-Signature", signature)];
    for (name, value) in headers {
        request = request.header(name, value);
    }
    if !idempotency_key.is_empty() {
        request = request.header("Idempotency-Key", idempotency_key);
    }
    if !body.is_empty() {
        request = request.header(CONTENT_TYPE, "application/json").body(body);
    }
    Ok(request.build()?)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [method, target, optional @ ..] = &arguments[..] else {
        return Err("sign METHOD TARGET [BODY [IDEMPOTENCY_KEY]]".into());
    };
    let body = optional.first().map_or("", String::as_str);
    let body = body.strip_prefix('@').map_or_else(|| Ok(body.into()), std::fs::read)?;
    let request = sign_request(method, target, body, optional.get(1).map_or("", String::as_str))?;
    // A redirect leads to a path that was not signed.
    let client = Client::builder().redirect(redirect::Policy::none()).timeout(Duration::from_secs(60)).build()?;
    let answer = client.execute(request).await?;
    let failed = answer.status().as_u16() >= 400;
    eprintln!("{}", answer.status().as_u16());
    println!("{}", answer.text().await?);
    Ok(ExitCode::from(u8::from(failed)))
}
