"""Canaries for suites that run by script: data for the languages we know, plain bash for others."""

import re

from stayer_evaluator.adjudication.suites.suite import Canary, SuiteFiles

_JAVASCRIPT = re.compile(r"^(?P<stem>.+?)(?P<suffix>[._](?:test|spec)\.(?P<kind>[cm]?js))$")
_NODE = """{load}

test('{word} holds', () => {{ assert.strictEqual(6 * 7, 42); }});
test('{word} breaks', () => {{ assert.strictEqual(6 * 7, 54); }});
"""
_REQUIRE = "const test = require('node:test');\nconst assert = require('node:assert');"
_IMPORT = "import test from 'node:test';\nimport assert from 'node:assert';"
_BASH = """echo "[passed] {word}_holds"
echo "[failed] {word}_breaks"
exit 1
"""


def native_canary(word: str, files: SuiteFiles) -> Canary | None:
    """Canaries that the suite's own runner collects, named as its files are; null: not known."""
    named = _JAVASCRIPT.match(files.sample)
    if named is None or "node:test" not in files.sample_text:
        return None
    commonjs = named.group("kind") == "cjs" or (
        named.group("kind") == "js" and "require(" in files.sample_text
    )
    source = _NODE.format(load=_REQUIRE if commonjs else _IMPORT, word=word)
    return Canary(
        folder=word,
        files={f"{word}{named.group('suffix')}": source.encode()},
        must_pass=f"{word} holds",
        must_fail=f"{word} breaks",
    )


def script_canary(word: str) -> Canary:
    """Two script cases: they prove shell, user, log and parser, not the suite's own runner."""
    return Canary(
        folder=word,
        files={f"{word}.sh": _BASH.format(word=word).encode()},
        must_pass=f"{word}_holds",
        must_fail=f"{word}_breaks",
        native=False,
    )
