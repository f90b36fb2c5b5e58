"""Tries the program with requests that schemathesis makes of its OpenAPI document, each of them signed: `tests/wire/interop/fuzz`.

Prints a row for each operation, with its cases by status, and each kind of failure with an example. The folder `target/fuzz/run` keeps what
schemathesis said. The exit code is 1 if an answer does not conform to the document.
"""

import argparse
import atexit
import contextlib
import hashlib
import hmac
import itertools
import json
import os
import pathlib
import secrets
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter, defaultdict
from urllib.parse import parse_qsl, urlsplit

import requests
import schemathesis
from hypothesis import strategies
from schemathesis.cli import schemathesis as command
from schemathesis.core.failures import AcceptedNegativeData
from schemathesis.openapi.checks import RejectedPositiveData

# Not ensure_resource_availability, use_after_free and object_level_authorization: nothing is made or deleted under a path of its own. Not
# missing_required_header: the headers of the signature are the only required ones, and ignored_auth leaves them out.
CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "positive_data_acceptance",
    "unsupported_method",
    "allow_header_conformance",
    "ignored_auth",
]
SIGNED_BY = ["X-Api-Key", "X-Timestamp", "X-Nonce", "X-Signature"]

# What each failure is counted as; any other stands in the last column.
COLUMNS = {
    "5xx": ["ServerError"],
    "undocumented": ["UndefinedStatusCode"],
    "violations": ["JsonSchemaError", "MalformedJson", "MalformedMediaType", "MissingContentType", "MissingHeaders", "UndefinedContentType"],
    "other": [],
}

ROOT = pathlib.Path(__file__).resolve().parents[3]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
HOME = TARGET / "fuzz/run"


def read_plan():
    """Starts the program, and makes a key for an application that may do everything."""
    parser = argparse.ArgumentParser(description="requests that schemathesis makes for /v1")
    parser.add_argument("--cases", type=int, default=20_000, help="minimum number of requests")
    parser.add_argument("--seed", type=int, default=1, help="seed of the requests")
    asked = parser.parse_args()
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    program, data = TARGET / "debug/cloudphone", ["--data", HOME / "data"]
    server = subprocess.Popen([program, *data, "--json", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE)
    atexit.register(server.kill)
    address = json.loads(server.stdout.readline())["listens"]

    def operate(line):
        said = subprocess.run([program, *line.split(), *data, "--json"], stdout=subprocess.PIPE, check=True)
        return json.loads(said.stdout)

    operate("app create fuzz --permission device --permission stream --requests-per-minute 4000000000")
    operate("device assign fuzz --all")
    key = operate("key create fuzz")
    # These operations refuse arguments for more than a schema can say.
    tools = [tomllib.loads(file.read_text())["tool"] for file in (ROOT / "spec/tools").iterdir()]
    judging = [tool["name"] for each in tools for tool in each if "invalid_argument" in tool.get("errors", [])]
    return {
        "url": f"http://{address}",
        "key": {"id": key["key_id"], "secret": key["secret"]},
        "cases": asked.cases,
        "seed": asked.seed,
        "judging": judging,
    }


PLAN = read_plan()
os.chdir(HOME)
statuses = defaultdict(Counter)
failures = defaultdict(list)


class Signed(requests.auth.AuthBase):
    """Signs a request once it is whole: path, query and body are those on the wire."""

    def __call__(self, request):
        path, _, query = request.path_url.partition("?")
        key, repeat = PLAN["key"], request.headers.get("Idempotency-Key") or ""
        stamp, nonce = str(int(time.time())), secrets.token_urlsafe(24)
        digest = hashlib.sha256(octets(request.body or b"")).hexdigest()
        fields = ["CP1-HMAC-SHA256", key["id"], stamp, nonce, request.method, path, query, repeat, digest]
        signature = hmac.new(octets(key["secret"]), b"\n".join(map(octets, fields)), hashlib.sha256).hexdigest()
        request.headers.update(zip(SIGNED_BY, [key["id"], stamp, nonce, signature]))
        return request


def octets(value):
    return value if isinstance(value, bytes) else value.encode()


def get(path, auth=None):
    answer = requests.get(PLAN["url"] + path, auth=auth, timeout=10)
    answer.raise_for_status()
    return answer.json()


DOCUMENT = get("/v1/openapi.json")
OPERATIONS = [(path, way, operation) for path, item in DOCUMENT["paths"].items() for way, operation in item.items()]


def known_ids():
    """The values of path parameters that the server shows in what it lists, so that not every request misses."""
    places = [parameter for _, _, operation in OPERATIONS for parameter in operation.get("parameters", [])]
    names = {parameter["name"] for parameter in places if parameter["in"] == "path"}
    found = defaultdict(set)

    def collect(value):
        if isinstance(value, dict):
            for name, inner in value.items():
                if name in names and isinstance(inner, str):
                    found[name].add(inner)
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
            collect(inner)

    for path, way, operation in OPERATIONS:
        if way == "get" and "{" not in path and "operationId" in operation:
            collect(get(path, Signed()))
    return {name: sorted(values) for name, values in found.items()}


IDS = known_ids()


@schemathesis.hook
def flatmap_path_parameters(context, path_parameters):
    known = {name: strategies.sampled_from(IDS[name]) for name in path_parameters or {} if name in IDS}
    meant = strategies.fixed_dictionaries(known).map(lambda ids: {**(path_parameters or {}), **ids})
    return strategies.one_of(strategies.just(path_parameters), meant) if known else strategies.just(path_parameters)


@schemathesis.hook
def before_call(context, case, kwargs):
    key = (case.headers or {}).get("Idempotency-Key")
    for place in (case.body, case.query):
        # The header and the argument are one and the same, which no schema can say.
        if key is not None and isinstance(place, dict) and "idempotency_key" in place:
            place["idempotency_key"] = key
        # An answer about a task in flight is held that long.
        if isinstance(place, dict) and place.get("wait_seconds") in range(1, 51):
            place["wait_seconds"] = 0


@schemathesis.hook
def after_call(context, case, response):
    statuses[case.operation.label][response.status_code] += 1
    if response.status_code == 401 and all(response.request.headers.get(name) for name in SIGNED_BY):
        note("SignatureRefused", case, response.request, response)


@schemathesis.hook
def after_network_error(context, case, request):
    note("NoAnswer", case, request)


@schemathesis.hook
def filter_failure(context, failure, case, response):
    identity = case.operation.definition.raw.get("operationId")
    judged = isinstance(failure, RejectedPositiveData) and identity in PLAN["judging"]
    if judged or isinstance(failure, AcceptedNegativeData) and has_absent(response.request):
        return False
    note(type(failure).__name__, case, response.request, response, failure.message)
    return True


def has_absent(request):
    """Whether something is null or empty as it is sent: the server takes that for left out where it is optional."""
    body = octets(request.body or b"")
    try:
        members = json.loads(body) if body.strip() else {}
    except ValueError:
        members = {}
    values = list(members.values()) if isinstance(members, dict) else []
    values += [value for _, value in parse_qsl(urlsplit(request.url).query, keep_blank_values=True)]
    values += [request.headers[name] for name in request.headers if name.lower() == "idempotency-key"]
    return any(value in (None, "", b"") for value in values) or bool(body) and not body.strip()


def note(kind, case, request, response=None, why=""):
    found = {"request": f"{request.method} {request.path_url}", "body": repr(request.body)[:300], "why": why[:500]}
    if response is not None:
        found |= {"status": response.status_code, "answer": response.text[:500]}
    failures[kind, case.operation.label].append(found)


def run(log, phases, seed, cases, *more):
    """Runs schemathesis as its command does. It exits; what it found is in `failures`."""
    arguments = ["run", "openapi.json", "--url", PLAN["url"], "--phases", phases, "--checks", ",".join(CHECKS), *more]
    arguments += ["--seed", str(seed), "--max-examples", str(cases), "--no-shrink", "--generation-database", "none"]
    arguments += ["--suppress-health-check", "all", "--continue-on-failure", "--no-color"]
    with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
        try:
            code = command(arguments, standalone_mode=False)
        except SystemExit as end:
            code = end.code
    if code and not failures:
        sys.exit(f"schemathesis ended with {code} and found nothing; its log says why")


def total():
    return sum(counts.total() for counts in statuses.values())


def main():
    schemathesis.auth.set_from_requests(Signed())
    # From a file, because schemathesis leaves out the path that a document was read from.
    with open("openapi.json", "w") as file:
        json.dump(DOCUMENT, file)
    # Signing puts back what is taken from a signature, so that only what has its own signature or none is meant so.
    whole = ["--generation-with-security-parameters", "false"]
    names = [operation["operationId"] for _, _, operation in OPERATIONS if "operationId" in operation]
    with open("schemathesis.log", "w") as log:
        run(log, "examples,coverage", PLAN["seed"], 100)
        run(log, "stateful", PLAN["seed"], 100, *whole)
        # One by one, because together some get far more cases than others.
        for seed in itertools.count(PLAN["seed"]):
            before = total()
            for name in names if before < PLAN["cases"] else []:
                missing = max(10, (PLAN["cases"] - before) // len(names) + 1)
                run(log, "fuzzing", seed, missing, "--include-operation-id", name, *whole)
            if total() == before:
                break
    show()


def show():
    for (kind, label), found in failures.items():
        print("\n" + json.dumps({"failure": kind, "operation": label, "times": len(found), **found[0]}, indent=2))
    kinds = {kind: column for column, kinds in COLUMNS.items() for kind in kinds}
    width = max(map(len, statuses))

    def row(name, cases, cells, said=""):
        shown = "".join(f"  {cell:>{len(head)}}" for head, cell in zip(COLUMNS, cells))
        print(f"{name:{width}}  {cases:>6}{shown}  {said}".rstrip())

    def counts(wanted):
        columns = Counter()
        for (kind, label), found in failures.items():
            columns[kinds.get(kind, "other")] += len(found) if wanted in (None, label) else 0
        return [columns[column] for column in COLUMNS]

    print()
    row("", "cases", COLUMNS, "statuses")
    for label, by_status in statuses.items():
        row(label, by_status.total(), counts(label), ", ".join(f"{status}: {count}" for status, count in sorted(by_status.items())))
    row("all", total(), counts(None))
    if failures:
        sys.exit(f"answers do not conform to the document: examples are above, all of them in {HOME}")


main()
