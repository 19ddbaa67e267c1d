"""Users and their tokens, how fast they may ask, and the log."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from sssjob.errors import UsageError
from sssjob.serve.access import RIGHTS, Audit, DeniedError, Pace, new_token, read_users
from sssjob.serve.desk import owner_of
from sssjob.serve.events import Happening, Happenings

DIGEST = "sha256:" + "0" * 64


def test_a_token_is_known_by_its_digest() -> None:
    token, digest = new_token()
    users = read_users(f'[users.amy]\ntoken = "{digest}"\nmay = ["submit"]\n[users.bob]\ntoken = "{DIGEST}"\n'.encode())
    amy = users.of(token)
    assert amy is not None and amy.name == "amy" and amy.may("submit") and not amy.may("see-all")
    with pytest.raises(DeniedError, match="amy has not the right ledger"):
        amy.require("ledger")
    assert users.of(digest) is users.of("") is users.of("\ud800") is None and token not in digest


@pytest.mark.parametrize(("text", "why"), [
    ("[users.amy", "not TOML"), ("", "users: is not said"), ("[users]\nx = 1\n", "users.x"),
    (f'[users.amy]\ntoken = "{DIGEST}"\ncolour = "x"\n', "users.amy.colour: no such key"),
    (f'[users.amy]\ntoken = "{DIGEST}"\npassword = ""\n', "users.amy.password is empty"),
    ("[users.amy]\ntoken = 'secret'\n", "not of the form sha256:"), ("[users.amy]\nmay = []\n", "users.amy.token"),
    (f'[users."a:b"]\ntoken = "{DIGEST}"\n', "no name of a user"),
    (f'[users."-a"]\ntoken = "{DIGEST}"\n', "no name of a user"),
    (f'[users.amy]\ntoken = "{DIGEST}"\nmay = ["all"]\n', "unknown right 'all' (known: submit, see-all"),
    (f'[users.a]\ntoken = "{DIGEST}"\n[users.b]\ntoken = "{DIGEST}"\n', "users.b has the token of users.a"),
])
def test_wrong_files_of_users(text: str, why: str) -> None:
    with pytest.raises(UsageError) as error:
        read_users(text.encode(), "users.toml")
    assert str(error.value).startswith("users.toml: ") and why in str(error.value)
    assert "secret" not in str(error.value)


def test_every_right_is_explained() -> None:
    page = (Path(__file__).parents[2] / "docs" / "exchange.md").read_text()
    assert [right for right in RIGHTS if f"`{right}`" not in page] == []


def test_a_pace_is_kept_by_each() -> None:
    now = [0.0]
    pace = Pace(2.0, 3, lambda: now[0])
    assert [pace.wait("amy") for _ in range(4)] == [0, 0, 0, 0.5]
    assert pace.wait("bob") == 0
    now[0] = 0.5
    assert [pace.wait("amy") for _ in range(2)] == [0, 0.5]
    now[0] = 1000.0
    assert [pace.wait("amy") for _ in range(4)] == [0, 0, 0, 0.5]


def test_a_pace_forgets_those_who_came_once() -> None:
    now = [0.0]
    pace = Pace(1.0, 1, lambda: now[0])
    for number in range(20_000):
        now[0] += 0.01
        pace.wait(str(number))
    assert len(pace._states) < 10_200


def test_a_log_has_a_line_for_each(tmp_path: Path) -> None:
    for status in (200, 403):
        audit = Audit(str(tmp_path / "audit"), lambda: 12.3456)
        audit.note(user="a\nb", status=status, subject=None)
        audit.close()
    assert [json.loads(line) for line in (tmp_path / "audit").read_text().splitlines()] == [
        {"time": 12.346, "user": "a\nb", "status": 200}, {"time": 12.346, "user": "a\nb", "status": 403}]
    Audit(None).note(user="nobody")


def test_a_log_that_is_full_is_told_and_stops_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    audit = Audit("/dev/full")
    audit.note(user="amy")
    audit.close()
    assert capsys.readouterr().err == "sssjob: the audit log cannot be written: No space left on device\n"


@pytest.mark.parametrize(("request_", "user"), [
    (None, None), ("mine", None), ("serve:amy:key", "amy"), ("serve:amy:a:b", "amy"), ("server:amy:x", None)])
def test_whose_a_submission_is(request_: str | None, user: str | None) -> None:
    assert owner_of(request_) == user


def test_listeners_miss_nothing_and_cost_no_memory() -> None:
    """Those that are far behind read the journal, and a thousand others share what is kept."""
    written = 25_000

    async def read(number: int) -> tuple[list[Happening], int]:
        last = min(number + 1000, written)
        return [Happening(n, n % 7, f"id: {n}\n\n") for n in range(number + 1, last + 1)], max(last, number)

    async def sees(submission: int) -> bool:
        return submission == 3

    async def heard(since: int | None, count: int) -> list[int]:
        numbers: list[int] = []
        async for text in happenings.stream(since, sees):
            assert text.count("id: ") <= 20, "no more of them wait for one listener"
            numbers += map(int, re.findall("id: ([0-9]+)", text))
            if len(numbers) >= count:
                break
        return numbers

    async def everything() -> None:
        nonlocal written
        happenings.begin(0)
        await happenings.look()
        for since in (0, 1_000, 14_000, 24_000):
            expected = [n for n in range(since + 1, written + 1) if n % 7 == 3]
            assert await heard(since, len(expected)) == expected
        waiting = [asyncio.create_task(heard(None, 1)) for _ in range(1000)]
        await asyncio.sleep(0)
        written += 7
        await happenings.look()
        assert {tuple(numbers) for numbers in await asyncio.gather(*waiting)} == {
            (next(n for n in range(written - 6, written + 1) if n % 7 == 3),)}
        rest = asyncio.create_task(heard(None, 1))
        await asyncio.sleep(0)
        happenings.close()
        assert await rest == []

    happenings = Happenings(read)
    asyncio.run(everything())
    assert len(happenings._latest) == 10_000
