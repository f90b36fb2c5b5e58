"""The official Python client of the protocol, of either major version, driven line by line.

The first line of its input is a plan, and each further one a session, a command in it, or null, which
ends the session. It answers each with a line. `interop.py` says what to call and judges the answers.
"""

import asyncio
import json
import sys
import traceback
from contextlib import asynccontextmanager
from importlib.metadata import version

from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


def read():
    return json.loads(sys.stdin.readline() or "null")


def say(**what):
    print(json.dumps(what), flush=True)


PLAN = read()
TIMEOUT_SECONDS = 90

# What to be pinned to; None leaves the client as it comes.
REVISION = PLAN["revision"]
VERSION = version("mcp")
FIRST = VERSION.startswith("1.")


@asynccontextmanager
async def transport(http, command, env):
    if command:
        streams = stdio_client(StdioServerParameters(command=command[0], args=command[1:], env=env))
    else:
        streams = streamable_http_client(PLAN["url"], http_client=http)
    async with streams as streams:
        yield streams


if FIRST:
    import httpx
    from mcp import ClientSession, types
    from mcp.shared.version import SUPPORTED_PROTOCOL_VERSIONS

    spoken = SUPPORTED_PROTOCOL_VERSIONS
    # It offers its latest revision. The server's answer decides what it speaks from then on.
    types.LATEST_PROTOCOL_VERSION = REVISION or types.LATEST_PROTOCOL_VERSION

    @asynccontextmanager
    async def connect(headers, command, env):
        async with (
            httpx.AsyncClient(headers=headers, timeout=TIMEOUT_SECONDS) as http,
            transport(http, command, env) as streams,
            ClientSession(*streams[:2]) as client,
        ):
            yield client, (await client.initialize()).protocolVersion

else:
    import httpx2
    from mcp.client import Client, session
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

    spoken = [REVISION]
    MODE = {"mode": REVISION} if REVISION else {}
    if REVISION in HANDSHAKE_PROTOCOL_VERSIONS:
        MODE = {"mode": "legacy"}
        session.LATEST_HANDSHAKE_VERSION = REVISION

    @asynccontextmanager
    async def connect(headers, command, env):
        async with (
            httpx2.AsyncClient(headers=headers, timeout=TIMEOUT_SECONDS) as http,
            Client(transport(http, command, env), **MODE) as client,
        ):
            yield client, client.protocol_version


async def answer(client, tool, arguments):
    if tool is None:
        return [tool.model_dump(by_alias=True) for tool in (await client.list_tools()).tools]
    return (await client.call_tool(tool, arguments)).model_dump(by_alias=True)


async def main():
    while asked := read():
        try:
            async with connect(**asked) as (client, revision):
                say(revision=revision)
                while command := read():
                    try:
                        say(result=await answer(client, *command))
                    except Exception as error:
                        say(error=traceback.format_exc(), code=getattr(getattr(error, "error", None), "code", None))
            say()
        except Exception:
            say(error=traceback.format_exc())


unspoken = REVISION and REVISION not in spoken
say(client=f"Python {VERSION}", unspoken=f"it has none but {', '.join(spoken)}" if unspoken else None)
asyncio.run(main())
