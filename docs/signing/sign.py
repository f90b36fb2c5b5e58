#!/usr/bin/env python3
"""Signs a request under /v1 and sends it: sign.py METHOD TARGET [BODY [IDEMPOTENCY_KEY]]

TARGET is the path from /v1 on, and the query: /v1/devices?limit=5. A BODY that begins with @ names a file.
The environment has the key in API_KEY and API_SECRET, and in API_URL the server, without a slash at its end.
TIMESTAMP and NONCE are for comparing with a test vector, and for nothing else.
"""

import hashlib
import hmac
import http.client
import os
import secrets
import sys
import time
from urllib.parse import urlsplit


def canonical_request(key_id, timestamp, nonce, method, path, query, idempotency_key, body):
    digest = hashlib.sha256(body).hexdigest()
    return "\n".join(["CP1-HMAC-SHA256", key_id, timestamp, nonce, method, path, query, idempotency_key, digest])


def signature(secret, canonical):
    return hmac.new(secret.encode(), canonical.encode(), hashlib.sha256).hexdigest()


def signed_headers(method, target, body=b"", idempotency_key=""):
    key_id, secret = os.environ["API_KEY"], os.environ["API_SECRET"]
    timestamp = os.environ.get("TIMESTAMP") or str(int(time.time()))
    nonce = os.environ.get("NONCE") or secrets.token_hex(16)
    # Sign the octets that are sent. http.client sends a target as it is given. Libraries that parse a URL may encode it
    # again, sort its query or resolve its dots: sign what they make of it. urllib and requests follow redirects, too.
    path, _, query = target.partition("?")
    canonical = canonical_request(key_id, timestamp, nonce, method, path, query, idempotency_key, body)
    headers = {"X-Api-Key": key_id, "X-Timestamp": timestamp, "X-Nonce": nonce}
    headers["X-Signature"] = signature(secret, canonical)
    if idempotency_key:
        headers["Idempotency-Key"] = idempotency_key
    if body:
        headers["Content-Type"] = "application/json"
    return headers


def send(method, target, body=b"", idempotency_key=""):
    server = urlsplit(os.environ.get("API_URL", "http://127.0.0.1:8080"))
    connect = http.client.HTTPSConnection if server.scheme == "https" else http.client.HTTPConnection
    connection = connect(server.netloc, timeout=60)
    headers = signed_headers(method, target, body, idempotency_key)
    connection.request(method, server.path + target, body or None, headers)
    return connection.getresponse()


def main(method, target, body="", idempotency_key=""):
    if body.startswith("@"):
        with open(body[1:], "rb") as file:
            content = file.read()
    else:
        content = body.encode()
    answer = send(method, target, content, idempotency_key)
    print(answer.status, file=sys.stderr)
    print(answer.read().decode())
    return int(answer.status >= 400)


if __name__ == "__main__":
    if not 3 <= len(sys.argv) <= 5:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
