"""The official Python client against the built binary: python_client.py BINARY [http [DATABASE]]

Runs with both generations of the client (see requirements-1.txt and requirements-2.txt), over standard input and output or
over HTTP with a token, from a folder or from a graph of a database. Lists the tools, calls each one
once, and looks at what the client library made of the answers: it validates them against the schemas by itself.
Prints one line per check, and the totals alone on the last line.
"""

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import mcp

VAULT = {
    "index.md": "---\ntitle: Start here\ntags: [map]\n---\n\nSee [[anchors]] and [[knots/bowline|the bowline]].\n",
    "anchors.md": "An anchor holds. Tie it with a [bowline](knots/bowline.md). #gear\n",
    "knots/bowline.md": "---\ntags: [knot, gear/rope]\n---\n\n## How\n\nThe rabbit comes out of the hole. [[nowhere]]\n",
    "knots/もやい結び.md": "結びの王。[[bowline]]\n",
}

# Every tool once: arguments, and what must be true of the answer. Later calls build on earlier ones.
CALLS = [
    ("search", {"query": "how to tie a knot", "limit": 3}, lambda a: 1 <= len(a) <= 3 and 0 <= a[0]["score"] <= 1),
    ("get_node", {"id": "Index.md", "depth": 1}, lambda a: a["title"] == "Start here" and a["outgoingCount"] == 2),
    ("get_neighbors", {"id": "knots/bowline.md", "direction": "in"}, lambda a: len(a) == 3),
    ("find_path", {"source": "index.md", "target": "knots/bowline.md"}, lambda a: a["length"] == 1),
    ("get_hubs", {"metric": "in_degree", "limit": 1}, lambda a: a[0]["id"] == "knots/bowline.md" and a[0]["score"] == 3),
    ("search_by_tags", {"tags": ["gear"]}, lambda a: [n["id"] for n in a] == ["anchors.md", "knots/bowline.md"]),
    ("random_node", {"tags": ["map"]}, lambda a: a["id"] == "index.md"),
    ("list_nodes", {"path": "knots/"}, lambda a: a["total"] == 2),
    ("resolve_nodes", {"names": ["bowlime"], "threshold": 0.6}, lambda a: a[0]["match"] == "knots/bowline.md"),
    ("nodes_exist", {"ids": ["ANCHORS.md", "no.md"]}, lambda a: a == {"anchors.md": True, "no.md": False}),
    ("create_node", {"id": "New.md", "content": "Fresh. [[anchors]]\n"}, lambda a: a["id"] == "new.md"),
    ("update_node", {"id": "new.md", "content": "Changed.\n"}, lambda a: a["content"].strip() == "Changed."),
    ("delete_node", {"id": "new.md"}, lambda a: a == {"deleted": True}),
    ("list_documents", {}, lambda a: a["total"] == 4),
    ("get_document", {"path": "knots/もやい結び.md"}, lambda a: a["content"].startswith("結びの王")),
    ("search_docs", {"query": "rabbit hole"}, lambda a: a["results"][0]["document"]["path"] == "knots/bowline.md"),
    ("ubp_search", {"query": "rabbit"}, lambda a: a["results"][0]["filepath"] == "knots/bowline.md"),
    ("ubp_get_page", {"filepath": "anchors.md"}, lambda a: a["outlinks"][0]["filepath"] == "knots/bowline.md"),
    ("ubp_get_context", {"filepath": "anchors.md", "depth": 1}, lambda a: len(a["related"]) == 2),
    ("ubp_fulltext_search", {"query": "結び"}, lambda a: "<mark>" in a["results"][0]["snippet"]),
    ("ubp_list_pages", {"sort": "filepath"}, lambda a: a["total"] == 4 and a["pages"][0]["filepath"] == "anchors.md"),
    ("ubp_get_graph", {}, lambda a: len(a["nodes"]) == 4 and len(a["edges"]) == 4),
    ("get_version", {}, lambda a: a["version"]),
    ("get_current_time", {}, lambda a: a["timestamp"].endswith("Z")),
    ("create_entity", {"name": "Rope", "entity_type": "widget", "observations": ["Hemp."]}, lambda a: a["entity_id"] == 1),
    ("get_entity", {"entity_id": 1}, lambda a: a["observations"][0]["observation_content"] == "Hemp."),
    ("update_entity", {"entity_id": 1, "aliases": "Line|Cord"}, lambda a: a["aliases"] == "Line|Cord"),
    (
        "bulk_update",
        {
            "entities": [{"name": "Mast", "entity_type": "Component"}, {"name": "Sail boat", "entity_type": "Project"}],
            "relations": [{"from_entity_id": "Mast", "to_entity_id": "Sail boat", "relation_type": "part_of"}],
        },
        lambda a: a["summary"] == {"entities_created": 2, "observations_created": 0, "relations_created": 1},
    ),
    ("create_observation", {"entity_id": 2, "text_content": "Of spruce."}, lambda a: a["memory_entity_id"] == 2),
    ("create_relation", {"from_entity_id": 1, "to_entity_id": 2, "relation_type": "holds"}, lambda a: a["relation_id"] == 2),
    ("find_relations", {"to_entity_id": 2}, lambda a: len(a) == 1),
    ("search_entities", {"query": "spruce"}, lambda a: a[0]["name"] == "Mast" and "observations" in a[0]["matched_fields"]),
    ("list_entities", {}, lambda a: a["pagination"]["total_entities"] == 3),
    ("search_subgraph", {"query": "rope"}, lambda a: a["entities"][0]["name"] == "Rope"),
    ("get_subgraph_by_ids", {"entity_ids": [1, 2]}, lambda a: len(a["relations"]) == 1),
    ("set_context", {"project_id": 3}, lambda a: a["status"] == "context_set"),
    ("get_context", {}, lambda a: a["project_name"] == "Sail boat"),
    ("clear_context", {}, lambda a: a["status"] == "context_cleared"),
    ("suggest_merges", {}, lambda a: a == []),
    ("update_observation", {"observation_id": 2, "text_content": "Of pine."}, lambda a: a["observation_content"] == "Of pine."),
    ("undo_change", {"change": 6}, lambda a: a["change"] == 6),
    ("merge_entities", {"entity_id": 1, "into_entity_id": 2, "dry_run": True}, lambda a: a["change"] is None),
    ("delete_relation", {"relation_id": 2}, lambda a: a["message"]),
    ("delete_observation", {"observation_id": 2}, lambda a: a["message"]),
    ("delete_entity", {"entity_id": 1}, lambda a: a["message"]),
]

# Calls that must fail as a result the model can read, never as an exception in the client.
FAILURES = [
    ("update_node", {"id": "no.md", "content": "x"}, lambda text: json.loads(text)["error"]["code"] == "NODE_NOT_FOUND"),
    ("create_node", {"id": "index.md", "content": "x"}, lambda text: json.loads(text)["error"]["code"] == "NODE_EXISTS"),
    ("get_hubs", {"limit": 51}, lambda text: json.loads(text)["error"]["code"] == "INVALID_PARAMS"),
    ("update_node", {"id": "anchors.md", "title": "x"}, lambda text: json.loads(text)["error"]["code"] == "LINK_INTEGRITY"),
    ("get_document", {"path": "../secret.md"}, lambda text: text.startswith("Error: ")),
    ("get_entity", {"entity_id": 99}, lambda text: json.loads(text)["error"]["code"] == "ResourceNotFound"),
]

TOTALS = {True: 0, False: 0}


def check(name, held, seen=None):
    TOTALS[bool(held)] += 1
    print(f"{'ok' if held else 'FAILED'}  {name}" + ("" if held else f": {seen!r}"))


def wire(result):
    """A result as it was on the wire: the two generations of the client name their fields differently."""
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


@contextlib.contextmanager
def served(binary, vault, state, database=None):
    """A server over HTTP that asks for tokens: its address, and a token."""
    environment = {**os.environ, "XDG_STATE_HOME": state}

    def run(*arguments):
        command = [binary, *arguments]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()

    if database:
        environment["QUIPU_DATABASE_URL"] = database
        run("db", "init")
        run("graph", "create", "peer")
        run("push", vault, "--graph", "peer")
        token = run("token", "new", "--name", "peer", "--graph", "peer")
        source = ["--graph", "peer"]
    else:
        token = run("--vault", vault, "token", "new", "--name", "peer")
        source = [vault]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % free.getsockname()[1]
    server = subprocess.Popen([binary, "serve", *source, "--http", address, "--require-token"], env=environment)
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(address.split(":")):
                break
            time.sleep(0.1)
        yield f"http://{address}/mcp", token
        if database:
            run("pull", vault, "--graph", "peer")
    finally:
        server.terminate()
        server.wait()


@contextlib.asynccontextmanager
async def http_sessions(url, token):
    """A connected session over HTTP, made in the way of the client's own generation."""
    headers = {"Authorization": f"Bearer {token}"}
    if hasattr(mcp, "Client"):
        import httpx2 as httpx
        from mcp.client.streamable_http import streamable_http_client

        async with httpx.AsyncClient(headers=headers, timeout=30) as http:
            async with mcp.Client(streamable_http_client(url, http_client=http)) as client:
                check("the newest protocol is agreed on", client.protocol_version == "2026-07-28", client.protocol_version)
                yield client.session
    else:
        from mcp.client.streamable_http import streamablehttp_client

        async with streamablehttp_client(url, headers=headers) as streams, mcp.ClientSession(*streams[:2]) as session:
            hello = await session.initialize()
            check("the older protocol is agreed on", hello.protocolVersion == "2025-11-25", hello.protocolVersion)
            check("a session is opened", bool(streams[2]()), streams[2]())
            yield session


@contextlib.asynccontextmanager
async def sessions(binary, vault):
    """A connected session, made in the way of the client's own generation."""
    server = mcp.StdioServerParameters(command=binary, args=["serve", str(vault)])
    if hasattr(mcp, "Client"):
        async with mcp.Client(server) as client:
            print(f"protocol {client.protocol_version}, server {client.server_info.name} {client.server_info.version}")
            check("the newest protocol is agreed on", client.protocol_version == "2026-07-28", client.protocol_version)
            yield client.session
    else:
        async with mcp.stdio_client(server) as streams, mcp.ClientSession(*streams) as session:
            hello = await session.initialize()
            print(f"protocol {hello.protocolVersion}, server {hello.serverInfo.name} {hello.serverInfo.version}")
            check("the older protocol is agreed on", hello.protocolVersion == "2025-11-25", hello.protocolVersion)
            yield session


async def talk(session):
    listed = wire(await session.list_tools())["tools"]
    names = [t["name"] for t in listed]
    missing = [call[0] for call in CALLS if call[0] not in names]
    check("every tool that is called here is listed", not missing, missing)
    check("every tool says whether it only reads", all("readOnlyHint" in t["annotations"] for t in listed))

    for name, arguments, holds in CALLS:
        result = wire(await session.call_tool(name, arguments))
        answer = json.loads(result["content"][0]["text"])
        check(f"{name} answers", not result.get("isError") and holds(answer), result)
        if "structuredContent" in result:
            check(f"{name} says the same twice", result["structuredContent"] == answer, result)
        else:
            check(f"{name} is no object, so it is told once", not isinstance(answer, dict), result)

    for name, arguments, holds in FAILURES:
        result = wire(await session.call_tool(name, arguments))
        check(f"{name} refuses {arguments}", result.get("isError") and holds(result["content"][0]["text"]), result)

    missing = wire(await session.call_tool("get_node", {"id": "no.md"}))
    check("a missing note is null, no error", missing["content"][0]["text"] == "null" and not missing.get("isError"), missing)
    try:
        check("a tool that does not exist is an error", False, await session.call_tool("no_such_tool", {}))
    except Exception as error:
        check("a tool that does not exist is an error", "no_such_tool" in str(error), error)


async def browse(session):
    resources = wire(await session.list_resources())["resources"]
    check("every note is a resource", [r["name"] for r in resources] == sorted(VAULT), resources)
    for resource in resources:
        read = wire(await session.read_resource(resource["uri"]))["contents"][0]
        check(f"{resource['uri']} is the file", read["text"] == VAULT[resource["name"]], read)
    template = wire(await session.list_resource_templates())["resourceTemplates"][0]["uriTemplate"]
    reference = {"type": "ref/resource", "uri": template}
    if hasattr(mcp, "types"):
        reference = mcp.types.ResourceTemplateReference(**reference)
    else:
        reference = __import__("mcp_types").ResourceTemplateReference(**reference)
    completed = wire(await session.complete(reference, {"name": "id", "value": "Knots/"}))["completion"]["values"]
    check("an id is completed", completed == ["knots/bowline.md", "knots/もやい結び.md"], completed)


async def prompted(session):
    prompts = [prompt["name"] for prompt in wire(await session.list_prompts())["prompts"]]
    check("the prompts are listed", prompts == ["brief", "daily_note", "weekly_review", "tidy_memory", "record_decision"], prompts)
    brief = wire(await session.get_prompt("brief", {"topic": "knots"}))["messages"][0]
    check("a prompt is filled in", "a brief on knots" in brief["content"]["text"] and brief["role"] == "user", brief)
    types = mcp.types if hasattr(mcp, "types") else __import__("mcp_types")
    reference = types.PromptReference(type="ref/prompt", name="brief")
    completed = wire(await session.complete(reference, {"name": "topic", "value": "anc"}))["completion"]["values"]
    check("an argument is completed", completed == ["anchors.md"], completed)


async def main(binary, way="stdio", database=None):
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as state:
        for path, text in VAULT.items():
            file = Path(folder, path)
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        if way == "http":
            with served(binary, folder, state, database) as (url, token):
                async with http_sessions(url, token) as session:
                    await talk(session)
                    await browse(session)
                    await prompted(session)
        else:
            async with sessions(binary, folder) as session:
                await talk(session)
                await browse(session)
                await prompted(session)
        left = {str(p.relative_to(folder)): p.read_text() for p in Path(folder).rglob("*.md") if ".quipu" not in p.parts}
        check("the vault is as it was", left == VAULT, left)


asyncio.run(asyncio.wait_for(main(*sys.argv[1:]), 120))
print(f"{TOTALS[True]} passed, {TOTALS[False]} failed")
sys.exit(1 if TOTALS[False] else 0)
