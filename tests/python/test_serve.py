"""The API of `onionskin serve` against its own description: schemathesis makes requests up, and none may end in an error of the server."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ONIONSKIN = os.environ["ONIONSKIN"]
TOKEN = "a-token-that-nobody-guesses"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serve")
    web, atlas = folder / "web", folder / "atlas"
    run = lambda *words: subprocess.run([ONIONSKIN, *map(str, words), "--quiet"], check=True, stdout=subprocess.DEVNULL)
    run("generate", "demo", "--pages", "400", "--format", "warc", "-o", web)
    run("run", web, "-o", atlas, "--index")
    process = subprocess.Popen(
        [ONIONSKIN, "serve", str(atlas), "--seen", str(folder / "seen"), "--listen", "127.0.0.1:0", "--json", "--quiet"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "ONIONSKIN_TOKEN": TOKEN},
    )
    try:
        yield json.loads(process.stdout.readline())["url"].rstrip("/"), process, folder
    finally:
        process.terminate()
        assert process.wait(timeout=30) == 0


def test_no_request_that_fits_the_description_is_a_server_error(server):
    url, process, folder = server
    program = pathlib.Path(sys.executable).with_name("schemathesis")
    examples = "200" if os.environ.get("ONIONSKIN_SLOW_TESTS") else "25"
    checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
    done = subprocess.run(
        [program, "run", f"{url}/api/v1/openapi.json", "--checks", checks, "--max-examples", examples, "--seed", "7",
         "--header", f"Authorization: Bearer {TOKEN}", "--request-timeout", "30", "--generation-database", "none", "--no-color"],
        capture_output=True,
        text=True,
        # What it keeps of its own goes where it works.
        cwd=folder,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert process.poll() is None
