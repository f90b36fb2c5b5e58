#!/usr/bin/env bash
# Signs a request under /v1 with openssl and sends it with curl: curl.sh METHOD TARGET [BODY [IDEMPOTENCY_KEY]]
#
# TARGET is the path from /v1 on, and the query: /v1/devices?limit=5. A BODY that begins with @ names a file.
# The environment has the key in API_KEY and API_SECRET, and in API_URL the server, without a slash at its end.
# TIMESTAMP and NONCE are for comparing with a test vector, and for nothing else.
set -euo pipefail

usage='curl.sh METHOD TARGET [BODY [IDEMPOTENCY_KEY]]'
method=${1:?$usage} target=${2:?$usage} body=${3-} idempotency_key=${4-}
export LC_ALL=C
if [[ $target == *[!\!-~]* ]]; then
  echo "encode what is not visible ASCII in $target with %: curl would do so after the signature is made" >&2
  exit 1
fi
timestamp=${TIMESTAMP:-$(date +%s)}
nonce=${NONCE:-$(openssl rand -hex 16)}

content() { if [[ $body == @* ]]; then cat -- "${body#@}"; else printf %s "$body"; fi; }
sha256() { openssl dgst -sha256 -r "$@" | cut -d ' ' -f 1; }

path=${target%%\?*}
query=
[[ $target == *\?* ]] && query=${target#*\?}
digest=$(content | sha256)
canonical=$(printf '%s\n' CP1-HMAC-SHA256 "$API_KEY" "$timestamp" "$nonce" "$method" "$path" "$query" \
  "$idempotency_key" "$digest")
# Whoever can list the processes of this machine sees the secret among the arguments of openssl while it runs.
signature=$(printf %s "$canonical" | sha256 -hmac "$API_SECRET")

headers=(--header "X-Api-Key: $API_KEY" --header "X-Timestamp: $timestamp" --header "X-Nonce: $nonce")
headers+=(--header "X-Signature: $signature")
[[ -n $idempotency_key ]] && headers+=(--header "Idempotency-Key: $idempotency_key")
[[ -n $body ]] && headers+=(--header "Content-Type: application/json" --data-binary "$body")
# Sign the octets that are sent. Without --path-as-is curl resolves dots, without --globoff it expands brackets, and
# --data strips line feeds from a file. --get and --data-urlencode put together a query of their own.
curl --silent --show-error --fail-with-body --max-time 60 --path-as-is --globoff --request "$method" "${headers[@]}" \
  --write-out '%{stderr}%{http_code}\n' "${API_URL:-http://127.0.0.1:8080}$target"
