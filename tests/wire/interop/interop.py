"""Official clients of the protocol, its conformance suites, the samples of docs/clients.md and an
editor, against the programs that `cargo test --workspace --no-run` built. `--all` pins each client.

A client is a script beside this one, and lock files pin its packages. It reads its calls, which come
from the contract, as JSON, and writes lines of JSON: its name, each check, and the reason if it cannot
speak a revision. Each runs with its own choice of revision; the two official SDKs (with `--all`, each
client) also run pinned to each revision that the contract serves.
"""

import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
HOME = TARGET / "interop"
PROGRAM = TARGET / "debug/cloudphone"
ALL = "--all" in sys.argv[1:]

# The package changed its name with its second major version.
SDK_2, SDK_1 = "@modelcontextprotocol/client", "@modelcontextprotocol/sdk"
# For every script that is not a suite, in addition to a call of each tool.
WANTED = ["handshake", "tools/list", "invalid_argument", "tools/list of a reader", "wrong secret"]
AS_IT_COMES = "as it comes"
# Clients wait most of the time. On an idle machine, the longest takes 20 s.
AT_ONCE, PATIENCE = 4, 300

RECORD = tomllib.loads((ROOT / "spec/generated/contract.toml").read_text())
TOOLS = [tool for file in sorted((ROOT / "spec/tools").iterdir()) for tool in tomllib.loads(file.read_text())["tool"]]
REVISIONS = sorted(RECORD["revision"])
LEFT_OUT = tomllib.loads((HERE / "conformance.toml").read_text())["left_out"]


def run(*command, **more):
    return subprocess.run(list(map(str, command)), check=True, text=True, **more)


def python(lock):
    folder = HOME / lock
    if not (folder / "bin/python").exists():
        run(sys.executable, "-m", "venv", folder)
    flags = ["--quiet", "--disable-pip-version-check", "--require-hashes", "--requirement"]
    run(folder / "bin/pip", "install", *flags, HERE / f"{lock}.txt")
    return folder / "bin/python"


def node():
    """Returns a Node that can run every package. Without it, they need Node.js 22.19 or later."""
    run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", cwd=HERE)
    machine = "x64" if platform.machine() == "x86_64" else "arm64"
    locked = HERE / f"node_modules/node-{sys.platform}-{machine}/bin/node"
    return locked if locked.exists() else "node"


class Cell:
    """One client with one choice of revision."""

    def __init__(self, name, pin=None):
        self.client, self.pin, self.checks, self.left_out = name, pin, [], []
        self.revision = self.unspoken = None

    def read(self, line):
        """Takes a line that is not JSON as a failure."""
        try:
            said = json.loads(line)
        except ValueError:
            said = {"check": "output", "failure": f"unknown line: {line}"}
        if "check" in said:
            self.checks.append((said["check"], said["failure"]))
        elif "left_out" in said:
            self.left_out.append((said["left_out"], said["why"]))
        else:
            vars(self).update(said)

    def title(self):
        return f"{self.client}, {self.pin or AS_IT_COMES}"

    def failures(self):
        return [(check, why) for check, why in self.checks if why is not None]

    def text(self):
        failed = self.failures()
        if failed:
            return f"FAILED: {failed[0][0]}" + (f" and {len(failed) - 1} more" if failed[1:] else "")
        if self.unspoken:
            return "-"
        return f"ok, {self.revision}" if self.revision and not self.pin else "ok"

    def show(self, seconds):
        lines = [f"\n> {self.title()}: {seconds:.0f} s"]
        lines += [f"ok      {check}" if why is None else f"FAILED  {check}: {why}" for check, why in self.checks]
        lines += [f"-       {name}: {why}" for name, why in self.left_out]
        print("\n".join(lines + ([f"-       {self.unspoken}"] if self.unspoken else [])), flush=True)


class Server:
    """The program, as users start it, in a folder of its own."""

    def __init__(self, number):
        self.home = HOME / f"run-{number}"
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)

    def __enter__(self):
        words = [PROGRAM, "--demo", "--json", "--listen", "127.0.0.1:0", "--data", self.home / "data"]
        with open(self.home / "log", "w") as log:
            self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log)
        told = json.loads(self.process.stdout.readline())
        self.url, self.keys = told["url"], [{"id": key["key_id"], "secret": key["secret"]} for key in told["keys"]]
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def try_script(command, pin, wanted, server):
    tools = [
        {
            "name": tool["name"],
            "task": RECORD["tool"][tool["name"]]["effect"] == "task",
            "examples": [example["arguments"] for example in tool.get("example", [])],
        }
        for tool in TOOLS
    ]
    plan = {"program": str(PROGRAM), "versions": REVISIONS, "tools": tools, "left_out": LEFT_OUT}
    plan |= {"url": server.url, "keys": server.keys, "revision": pin}
    cell = Cell(" ".join(map(str, command[1:])), pin)
    # Clients must not write data about a user into the user's own folder.
    environment = {**os.environ, "HOME": str(server.home)}
    try:
        ended = subprocess.run(
            list(map(str, command)), input=json.dumps(plan), capture_output=True, text=True, timeout=PATIENCE, cwd=HERE, env=environment
        )
        said, why = ended.stdout, f"{ended.returncode}: {ended.stderr}" if ended.returncode else None
    except subprocess.TimeoutExpired as late:
        said, why = (late.stdout or b"").decode(), f"it was ended after {PATIENCE} s"
    for line in said.splitlines():
        cell.read(line)
    cell.checks.append(("its own end", why))
    if not cell.unspoken:
        tried = {check for check, _ in cell.checks}
        cell.checks += [(name, "was not tried") for name in wanted if name not in tried]
    return cell


PATIENT = """
const patient = fetch;
globalThis.fetch = (url, init) => {
  const signals = [init.signal, AbortSignal.timeout(5000)].filter(Boolean);
  return patient(url, { ...init, signal: AbortSignal.any(signals) });
};
"""
# The fence, the ending, the comment, and the replacements for a client that stops reading after 5 s.
LANGUAGES = {
    "Python": ("python", "py", "#", [("timeout=35", "timeout=5"), (", wait_seconds=25", "")]),
    "TypeScript": ("js", "mjs", "//", [("\n\n", PATIENT), (", wait_seconds: 25", "")]),
}


def try_sample(language, major, interpreter, number):
    """Runs a sample as it stands, but for the address and the key. It is for the latest major version of
    its package; a comment that begins with `version 1: ` replaces the line above it for that version."""
    fence, ending, comment, impatient = LANGUAGES[language]
    text = re.search(rf"```{fence}\n(.*?)```", (ROOT / "docs/clients.md").read_text(), re.DOTALL)[1]
    mark, lines, above = f"{comment} version 1: ", [], ""
    for line in text.splitlines():
        if not line.startswith(mark):
            lines.append(line)
        elif major == 1:
            if not above.startswith(mark):
                lines.pop()
            lines.append(line.removeprefix(mark))
        above = line
    cell, text = Cell(f"docs/clients.md, {language} {major}"), "\n".join(lines) + "\n"
    for check, changes in [("as it stands", []), ("5 s to read, no wait_seconds", impatient)]:
        with Server(number) as server:
            key, sample = server.keys[0], text
            known = [("http://127.0.0.1:8080/mcp", server.url), ("KEY_ID", key["id"]), ("SECRET", key["secret"])]
            for old, new in [*changes, *known]:
                assert old in sample, f"the sample does not contain {old!r}"
                sample = sample.replace(old, new, 1)
            # Node resolves the packages from the folder of the file.
            file = (HERE / "node_modules" if ending == "mjs" else server.home) / f"sample-{number}.{ending}"
            file.write_text(sample)
            ended = subprocess.run([str(interpreter), str(file)], capture_output=True, text=True, timeout=PATIENCE)
        is_well = ended.returncode == 0 and ended.stdout.strip() == "success"
        cell.checks.append((check, None if is_well else f"{ended.returncode}: {ended.stdout}{ended.stderr}"))
    return cell


def check_editor():
    """Tombi must have no finding in any contract, find mistakes at their places, and complete names."""
    home = HOME / "editor"
    shutil.rmtree(home, ignore_errors=True)
    folders = ["spec", "tests/services/print_shop/spec", "tests/services/files/spec", "tests/contract/forms"]
    for number, folder in enumerate(folders):
        spec = home / str(number) / "spec"
        shutil.copytree(ROOT / folder, spec, ignore=shutil.ignore_patterns("released.toml", "accepted.toml", "generated"))
        for file in [*spec.glob("*.toml"), *spec.glob("tools/*.toml")]:
            text, is_tools = file.read_text(), file.parent.name == "tools"
            schema = "../generated/editor/tools" if is_tools else f"generated/editor/{file.stem}"
            if not text.startswith("#:schema "):
                file.write_text(f"#:schema {schema}.schema.json\n{text}")
        run(TARGET / "debug/toolwarrant", "--spec", spec, "gen", stdout=subprocess.DEVNULL)
    interpreter = python("tombi")
    said = run(interpreter, HERE / "editor.py", interpreter.with_name("tombi"), cwd=home, stdout=subprocess.PIPE).stdout
    print("".join(f"editor: {line}\n" for line in said.splitlines()))
    return len(said.splitlines())


def main():
    passed = check_editor()
    wanted = WANTED + [tool["name"] for tool in TOOLS]
    without_key = [check for check in wanted if check != "wrong secret"]
    pythons, js = {major: python(f"python-{major}") for major in [2, 1]}, node()
    scripts = []
    for major, interpreter in pythons.items():
        scripts.append(([interpreter, "client.py"], wanted, major == 2))
        scripts.append(([interpreter, "client.py", "stdio"], without_key, major == 2))
    scripts += [([js, "client.mjs", package], wanted, package == SDK_2) for package in [SDK_2, SDK_1]]
    scripts += [([js, "client.mjs", SDK_2, bridge], wanted, False) for bridge in ["mcp-remote", "cloudphone bridge"]]
    scripts += [([js, "client.mjs", package, "cloudphone stdio"], without_key, False) for package in [SDK_2, SDK_1]]
    scripts.append(([js, "inspector.mjs"], wanted, False))
    # The second suite has scenarios for more revisions.
    suites = ["@modelcontextprotocol/conformance", "conformance-next"]
    scripts += [([js, "conformance.mjs", suite], [], False) for suite in suites]
    jobs = []
    for row, (command, checks, is_official) in enumerate(scripts):
        for pin in [None, *(REVISIONS if ALL or is_official else [])]:
            jobs.append((row, lambda server, work=(command, pin, checks): try_script(*work, server)))
    for language, interpreters in [("Python", pythons), ("TypeScript", {2: js, 1: js})]:
        for major, interpreter in interpreters.items():
            row = len(scripts) + len(jobs)
            jobs.append((row, (language, major, interpreter)))

    def work(job):
        number, (row, what) = job
        begun = time.monotonic()
        if isinstance(what, tuple):
            cell = try_sample(*what, number)
        else:
            with Server(number) as server:
                cell = what(server)
        cell.row = row
        cell.show(time.monotonic() - begun)
        return cell

    # It begins at the end, because samples take the longest.
    with ThreadPoolExecutor(AT_ONCE) as pool:
        cells = list(pool.map(work, reversed(list(enumerate(jobs)))))
    sys.exit(show(cells, passed))


def show(cells, passed):
    pins = [None, *REVISIONS]
    rows = [["", AS_IT_COMES, *REVISIONS]]
    for row in sorted({cell.row for cell in cells}):
        own = {cell.pin: cell for cell in cells if cell.row == row}
        rows.append([own[None].client, *(own[pin].text() if pin in own else "-" for pin in pins)])
    widths = [max(map(len, column)) for column in zip(*rows)]
    print()
    for row in rows:
        print("  ".join(f"{text:{width}}" for text, width in zip(row, widths)).rstrip())
    failures = [f"{cell.title()}: {check}: {why}" for cell in cells for check, why in cell.failures()]
    if ALL:
        met = {name for cell in cells for name, _ in cell.left_out}
        idle = [name for entry in LEFT_OUT for name in entry["names"] if name not in met]
        failures += [f"`{name}` is listed as left out, but no suite left it out" for name in idle]
    for line in [f"{cell.title()}: -, {cell.unspoken}" for cell in cells if cell.unspoken] + failures:
        print(line)
    print(f"\n{passed + sum(len(cell.checks) - len(cell.failures()) for cell in cells)} passed, {len(failures)} failed")
    return 1 if failures else 0


main()
