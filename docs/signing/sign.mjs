#!/usr/bin/env node
// Signs a request under /v1 and sends it: sign.mjs METHOD TARGET [BODY [IDEMPOTENCY_KEY]]
//
// TARGET is the path from /v1 on, and the query: /v1/devices?limit=5. A BODY that begins with @ names a file.
// The environment has the key in API_KEY and API_SECRET, and in API_URL the server, without a slash at its end.
// TIMESTAMP and NONCE are for comparing with a test vector, and for nothing else.
import { createHash, createHmac, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";

const { API_KEY, API_SECRET, API_URL = "http://127.0.0.1:8080" } = process.env;

function signedRequest(method, target, body = Buffer.alloc(0), idempotencyKey = "") {
  const timestamp = process.env.TIMESTAMP ?? String(Math.floor(Date.now() / 1000));
  const nonce = process.env.NONCE ?? randomBytes(16).toString("hex");
  // Sign the octets that are sent. A URL encodes what it is made of and resolves its dots, and fetch sends what is then in
  // it: so read path and query back from the URL. `searchParams` encodes once more as soon as it is changed.
  const url = new URL(API_URL + target);
  const path = url.pathname.slice(new URL(API_URL).pathname.replace(/\/$/, "").length);
  const query = url.search.slice(1);
  const digest = createHash("sha256").update(body).digest("hex");
  const canonical = ["CP1-HMAC-SHA256", API_KEY, timestamp, nonce, method, path, query, idempotencyKey, digest].join("\n");
  const signature = createHmac("sha256", API_SECRET).update(canonical).digest("hex");

  const headers = { "X-Api-Key": API_KEY, "X-Timestamp": timestamp, "X-Nonce": nonce, "X-Signature": signature };
  if (idempotencyKey) headers["Idempotency-Key"] = idempotencyKey;
  if (body.length) headers["Content-Type"] = "application/json";
  // A redirect leads to a path that was not signed.
  return new Request(url, { method, headers, body: body.length ? body : undefined, redirect: "manual" });
}

const [method, target, body = "", idempotencyKey = ""] = process.argv.slice(2);
if (!target || !API_KEY || !API_SECRET) {
  console.error("sign.mjs METHOD TARGET [BODY [IDEMPOTENCY_KEY]], with API_KEY and API_SECRET in the environment");
  process.exit(1);
}
const content = body.startsWith("@") ? readFileSync(body.slice(1)) : Buffer.from(body);
const answer = await fetch(signedRequest(method, target, content, idempotencyKey));
console.error(answer.status);
console.log(await answer.text());
process.exitCode = answer.ok ? 0 : 1;
