"""What two jobs have left is compared: ids, directories and the names of streams stand for each other, nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sssjob.run.leavings import Leavings, differences
from sssjob.translators.scripts.rows import dialect_of

#: Manager -> id of its job.
IDS = {"slurm": "12", "sge": "907", "pbspro": "31.head", "torque": "44.head", "lsf": "8", "cobalt": "3"}


def left(folder: Path, manager: str, files: dict[str, str], home: Path | None = None) -> Leavings:
    """What a job of a manager has left in a new folder; ``{id}`` and ``{n}`` in names and texts are its id, and the
    number in it, ``{here}`` its folder."""
    dialect, ident = dialect_of(manager), IDS[manager]
    assert dialect is not None
    directory = folder / f"{manager}-{len(list(folder.iterdir()))}"
    directory.mkdir()
    number = ident.partition(".")[0]
    for name, text in files.items():
        path = directory / name.format(id=ident, n=number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(id=ident, n=number, here=directory))
    return Leavings(manager, directory, sorted({ident, number}, key=len, reverse=True), frozenset({"job"}),
                    dialect.files, home)


def told(original: Leavings, converted: Leavings) -> list[tuple[str, str]]:
    """What differs, without the diffs."""
    return [(difference.subject, difference.message) for difference in differences(original, converted)]


@pytest.mark.parametrize(("one", "other"), [
    (("slurm", {"slurm-{n}.out": "b\na\n"}), ("sge", {"x.o{n}": "a\n", "x.e{n}": "b\n"})),
    (("slurm", {"slurm-{n}.out": "b\na\n"}), ("sge", {"x.o{n}": "b\na\n", "x.e{n}": ""})),
    (("slurm", {"slurm-{n}_3.out": "third\n"}), ("sge", {"x.o{n}.3": "third\n", "x.e{n}.3": ""})),
    (("slurm", {"slurm-{n}_3.out": "third\n"}), ("torque", {"x.o{n}-3": "third\n", "x.e{n}-3": ""})),
    (("slurm", {"slurm-{n}_3.out": "third\n"}), ("pbspro", {"x.o{n}.3": "third\n"})),
    (("sge", {"x.o{n}": "a\n", "x.e{n}": "b\n"}), ("cobalt", {"{n}.output": "a\n", "{n}.error": "b\n"})),
    (("sge", {"x.o{n}": "", "x.po{n}": "", "x.pe{n}": ""}), ("slurm", {"slurm-{n}.out": ""})),
    (("sge", {"x.o{n}": ""}), ("lsf", {})),
    (("slurm", {"a.{n}/{n}": "{here}/a is {n}\n"}), ("pbspro", {"a.{n}/{n}": "{here}/a is {id}\n"})),
    (("slurm", {"job": "one script"}), ("sge", {"job": "another"})),
], ids=["apart", "joined", "element", "torque", "pbs", "both-apart", "environment", "nothing", "ids", "scripts"])
def test_the_same(tmp_path: Path, one: tuple[str, dict[str, str]], other: tuple[str, dict[str, str]]) -> None:
    assert told(left(tmp_path, *one), left(tmp_path, *other)) == []
    assert told(left(tmp_path, *other), left(tmp_path, *one)) == []


@pytest.mark.parametrize(("one", "other", "subjects"), [
    (("slurm", {"slurm-{n}.out": "a\na\n"}), ("sge", {"x.o{n}": "a\n", "x.e{n}": ""}), ["standard output and errors"]),
    (("sge", {"x.o{n}": "a\n", "x.e{n}": "b\n"}), ("cobalt", {"{n}.output": "b\n", "{n}.error": "a\n"}),
     ["standard output", "standard errors"]),
    (("slurm", {"slurm-{n}_3.out": "x\n"}), ("sge", {"x.o{n}.4": "x\n"}),
     ["standard output and errors of element 3", "standard output of element 4"]),
    (("slurm", {"slurm-{n}.out": "x\n"}), ("lsf", {}), ["standard output and errors"]),
    (("slurm", {"f": "112"}), ("sge", {"f": "1907"}), ["f"]),
    (("slurm", {"f": "x"}), ("sge", {"f": "x\n"}), ["f"]),
    (("slurm", {"f": "x", "sub/g": ""}), ("sge", {"f/g": "x"}), ["f", "sub/g", "f/g"]),
    (("sge", {"x.po{n}": "lost\n"}), ("slurm", {}), ["x.po907"]),
    (("sge", {"x.o{n}1": "a\n"}), ("slurm", {}), ["x.o9071"]),
], ids=["twice", "swapped", "elements", "unfiled", "within", "end", "places", "environment", "another-id"])
def test_what_differs(tmp_path: Path, one: tuple[str, dict[str, str]], other: tuple[str, dict[str, str]],
                      subjects: list[str]) -> None:
    assert [subject for subject, _ in told(left(tmp_path, *one), left(tmp_path, *other))] == subjects


def test_streams_in_the_home_directory_are_compared_and_stay(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "x.o907").write_text("hello\n")
    (home / "x.o906").write_text("of another job\n")
    assert told(left(tmp_path, "sge", {}, home), left(tmp_path, "slurm", {"slurm-{n}.out": "hello\n"})) == []
    assert sorted(path.name for path in home.iterdir()) == ["x.o906", "x.o907"]


def test_an_old_job_of_that_id_has_left_its_streams_in_the_home_directory(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "old.o907").write_text("hello\n")
    job = left(tmp_path, "sge", {}, home)
    assert job.outputs({}).keys() == {("standard output", "")}
    assert replace(job, since=(home / "old.o907").stat().st_mtime + 1).outputs({}) == {}


def test_links_and_what_is_no_file(tmp_path: Path) -> None:
    """A link is where it leads, and is not followed: one that leads nowhere too."""
    one, other = left(tmp_path, "slurm", {}), left(tmp_path, "sge", {})
    (one.directory / "same").symlink_to(one.directory / "absent")
    (other.directory / "same").symlink_to(other.directory / "absent")
    (one.directory / "else").symlink_to("/etc")
    (other.directory / "else").write_text("")
    assert told(one, other) == [("else", "it is a file on one side and none on the other")]


def test_a_large_file_is_compared_as_it_is(tmp_path: Path) -> None:
    large = "x" * (4 << 20)
    one, other = left(tmp_path, "slurm", {"f": large + "{n}"}), left(tmp_path, "sge", {"f": large + "{n}"})
    assert [subject for subject, _ in told(one, other)] == ["f"]
    (other.directory / "f").write_bytes((one.directory / "f").read_bytes())
    assert told(one, other) == []


def test_what_is_no_text_is_not_shown(tmp_path: Path) -> None:
    one, other = left(tmp_path, "slurm", {}), left(tmp_path, "sge", {})
    for side, octets in ((one, b"\xff\xfe"), (other, b"a\0b")):
        (side.directory / "f").write_bytes(octets)
    assert [(difference.message, difference.lines) for difference in differences(one, other)] == [
        ("it differs, and is no text (2 and 3 bytes)", ())]


def test_a_diff_is_short_and_a_line_that_has_only_another_id_is_not_in_it(tmp_path: Path) -> None:
    one = left(tmp_path, "slurm", {"f": "job {n}\n" + "a\n" * 30})
    (difference,) = differences(one, left(tmp_path, "sge", {"f": "job {n}\n" + "b\n" * 30}))
    assert (len(difference.lines), difference.lines[-1]) == (21, "... 44 more lines")
    assert difference.lines[3:5] == (" job 907", "-a")
