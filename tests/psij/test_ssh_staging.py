"""Files of jobs behind SSH: brought and fetched whole or not at all, with the rules of staging on one machine, over
lines that are cut and from hosts that lie. A stand-in for ``ssh`` runs what it is sent by sh.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from psij import JobState, StageIn, StageOut, StageOutFlags, StagingMode, SubmitException
from psij.executors._local_staging import Item, StagingError, StagingStopped
from psij.executors.batch import _staging
from psij.executors.batch._ssh import SSHHost
from psij.executors.batch._ssh_staging import SSHStaging
from psij.executors.batch._unpacking import unpack
from psij.executors.batch.slurm import SlurmJobExecutor
from tests.fakes import slurm, ssh
from tests.psij.batch_support import Stand, a_job, ended, stand_in

COPY, MOVE = StagingMode.COPY, StagingMode.MOVE
SUCCESS = StageOutFlags.ON_SUCCESS


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the host."""
    ssh.install(tmp_path, tmp_path / "ssh")
    monkeypatch.setenv("PATH", f"{tmp_path / 'ssh'}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    host = ssh.add_host(tmp_path, "away")
    (host / "home" / "job").mkdir()
    return host


@pytest.fixture
def there(away: Path) -> Path:
    """The directory of the job."""
    return away / "home" / "job"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


Make = Callable[..., SSHStaging]


@pytest.fixture
def make(away: Path, there: Path) -> Make:
    def staging(*items: Item, out: tuple[Item, ...] = (), cleanup: tuple[str, ...] = (), **members: Any) -> SSHStaging:
        return replace(SSHStaging(str(there), items, out, cleanup, StageOutFlags.ALWAYS, "mark",
                                  host=SSHHost("amy@away", "echo of the setup; cat"), idle_s=20, most=1 << 20),
                       **members)
    return staging


def on(path: Path, name: str, mode: StagingMode = COPY) -> Item:
    return Item(str(path / "source"), name, mode)


def go() -> bool:
    return False


def a_tree(folder: Path) -> Path:
    """Whatever names, modes and links there may be."""
    folder.mkdir()
    for name in ("-n", "new\nline", "a b'c\"$x`", "\udcff", "é", "n" * 200, "@a", "*", ".hidden"):
        (folder / name).write_text(name, errors="surrogateescape")
    (folder / "run").write_bytes(b"\0\xff" * 40_000)
    (folder / "run").chmod(0o750)
    deep = folder / ("d" * 90) / ("e" * 90)
    deep.mkdir(parents=True)
    (deep / "file").touch()
    os.utime(deep / "file", (1, 1_000_000_000))
    (folder / "empty").mkdir(0o711)
    (folder / "link").symlink_to("run")
    (folder / "dangling").symlink_to("/nowhere/at all")
    os.link(folder / "run", folder / "twice")
    return folder


def seen(folder: Path) -> dict[str, object]:
    """All of a folder: by name what it is, its mode, and its content."""
    entries: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        what: object = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        entries[str(path.relative_to(folder))] = (oct(status.st_mode), what,
                                                  int(status.st_mtime) if path.name == "file" else 0)
    return entries


def left_behind(*folders: Path) -> list[Path]:
    """What is there of transfers that have ended."""
    return [path for folder in folders for path in folder.rglob(".psij-*")]


# --- there and back ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("mode", [COPY, MOVE])
def test_a_folder_goes_there_and_comes_back(make: Make, here: Path, there: Path, mode: StagingMode) -> None:
    """Its names, links, modes and times are the same; a link to it is followed."""
    before = seen(a_tree(here / "tree"))
    (here / "source").symlink_to("tree")
    inside = there / "new folder" / "of\nit's"
    make(Item(str(here / "source"), str(inside), mode)).bring(go)
    assert seen(inside) == before
    assert (here / "source").is_symlink() is (mode is COPY) and seen(here / "tree") == before
    (there / "back").symlink_to(inside)
    target = here / "results" / "back"
    make(out=(Item(str(there / "back"), str(target), mode),)).fetch(SUCCESS, go)
    assert seen(target) == before and not target.is_symlink()
    assert (there / "back").is_symlink() is (mode is COPY)
    assert left_behind(here, there) == []


@pytest.mark.parametrize("mode", [COPY, MOVE])
@pytest.mark.parametrize("size", [0, 1, 511, 512, 700_001])
def test_a_file(make: Make, here: Path, there: Path, mode: StagingMode, size: int) -> None:
    content = os.urandom(size)
    (here / "source").write_bytes(content)
    (here / "source").chmod(0o640)
    (there / "target").symlink_to(here / "not through it")
    make(Item(str(here / "source"), str(there / "target"), mode)).bring(go)
    assert (there / "target").read_bytes() == content and not (there / "target").is_symlink()
    assert stat.S_IMODE((there / "target").stat().st_mode) == 0o640
    assert (here / "source").exists() is (mode is COPY)
    make(out=(Item(str(there / "target"), str(here / "back"), mode),)).fetch(SUCCESS, go)
    assert (here / "back").read_bytes() == content and stat.S_IMODE((here / "back").stat().st_mode) == 0o640
    assert (there / "target").exists() is (mode is COPY)
    assert left_behind(here, there) == []


def test_targets_that_exist(make: Make, here: Path, there: Path) -> None:
    """The rules are those of one machine: an existing folder gets the contents, and is not replaced by a file."""
    def a_pair(base: Path, first: str) -> Path:
        for name in ("sub/both", f"sub/{first}", f"{first}/only"):
            (base / name).parent.mkdir(parents=True, exist_ok=True)
            (base / name).write_text(first)
        return base

    source, target = a_pair(here / "source", "new"), a_pair(there / "target", "old")
    (target / "also").symlink_to("nowhere")
    (source / "also").write_text("new")
    make(Item(str(source), str(target), COPY)).bring(go)
    texts = {str(path.relative_to(target)): path.read_text() for path in target.rglob("*") if path.is_file()}
    assert texts == {"sub/both": "new", "sub/new": "new", "new/only": "new", "sub/old": "old", "old/only": "old",
                     "also": "new"}
    make(out=(Item(str(target), str(source), COPY),)).fetch(SUCCESS, go)
    assert {str(path.relative_to(source)): path.read_text() for path in source.rglob("*") if path.is_file()} == texts
    (here / "file").write_text("x")
    (there / "pipe").parent.mkdir(exist_ok=True)
    os.mkfifo(there / "pipe")
    (there / "file").write_text("y")
    for item, why in ((Item(str(here / "file"), str(target), COPY), "the target is a folder"),
                      (Item(str(here / "file"), str(there / "pipe"), COPY), "the target is a device or a pipe"),
                      (Item(str(source), str(there / "file"), COPY), "cannot overwrite non-directory|Not a directory")):
        with pytest.raises(StagingError, match=why) as raised:
            make(item).bring(go)
        assert not raised.value.transient and not raised.value.away
    assert (there / "file").read_text() == "y" and left_behind(here, there) == []


def test_what_is_not_there(make: Make, here: Path, there: Path) -> None:
    for item in (Item(str(here / "none"), str(there / "a"), COPY), Item(str(here / "pipe"), str(there / "a"), COPY)):
        if "pipe" in item.source:
            os.mkfifo(here / "pipe")
        with pytest.raises(StagingError, match=r"does not exist|is not a file"):
            make(item).bring(go)
    os.mkfifo(there / "pipe")
    if_present = StageOutFlags.ALWAYS | StageOutFlags.IF_PRESENT
    make(out=(Item(str(there / "none"), str(here / "b"), COPY, if_present),)).fetch(SUCCESS, go)
    for name in ("none", "pipe"):
        with pytest.raises(StagingError, match=r"does not exist|is not a file") as raised:
            make(out=(Item(str(there / name), str(here / "b"), COPY),)).fetch(SUCCESS, go)
        assert f"cannot copy amy@away:{there / name} to {here / 'b'}: " in str(raised.value)
    assert not (here / "b").exists() and not (there / "a").exists() and left_behind(here, there) == []


def test_it_was_moved_before(make: Make, here: Path, there: Path) -> None:
    """A client that goes on with what another one began takes a source that is gone and a target that is there so."""
    (here / "back").write_text("x")
    item = Item(str(there / "o"), str(here / "back"), MOVE)
    with pytest.raises(StagingError, match="does not exist"):
        make(out=(item,)).fetch(SUCCESS, go)
    make(out=(item,)).fetch(SUCCESS, go, again=True)
    (there / "in").write_text("x")
    staged = make(Item(str(here / "gone"), str(there / "in"), MOVE))
    assert staged.is_brought(staged.stage_in[0])
    assert not staged.is_brought(Item(str(here / "gone"), str(there / "other"), MOVE))
    assert not staged.is_brought(Item(str(here / "back"), str(there / "in"), MOVE))


def test_too_much(make: Make, here: Path, there: Path) -> None:
    (here / "source").write_bytes(b"x" * 101)
    (there / "source").write_bytes(b"x" * 101)
    for staged, act in ((make(Item(str(here / "source"), str(there / "a"), COPY), most=100), "bring"),
                        (make(out=(Item(str(there / "source"), str(here / "b"), COPY),), most=100), "fetch")):
        with pytest.raises(StagingError, match="more than 100 bytes"):
            staged.bring(go) if act == "bring" else staged.fetch(SUCCESS, go)
    assert os.listdir(here) == ["source"] and os.listdir(there) == ["source"]


# --- cleaning up ------------------------------------------------------------------------------------------------------

def test_cleanup(make: Make, away: Path, there: Path) -> None:
    """Only what really is inside the directory goes; a link at the end goes itself, and nothing there is no error."""
    outside = away / "home" / "outside"
    a_tree(outside)
    a_tree(there / "tree\n")
    for name in ("it's", "-rf", "kept"):
        (there / name).write_text("x")
    (there / "link").symlink_to(outside)
    (there / "to").symlink_to(outside)
    make(cleanup=tuple(str(there / name) for name in ("tree\n", "it's", "-rf", "link", "none", "no/ne", "kept/."))
         ).remove(SUCCESS)
    assert sorted(os.listdir(there)) == ["to"] and seen(outside)
    for name in ("to/run", "../outside/run", "../outside", "to/.."):
        with pytest.raises(StagingError, match=r"is not inside the job's directory|ends with"):
            make(cleanup=(str(there / name),)).remove(SUCCESS)
    assert (outside / "run").exists()
    make(cleanup=("/",), cleanup_flags=StageOutFlags.ON_ERROR).remove(SUCCESS)


# --- lines ------------------------------------------------------------------------------------------------------------

GREETED = 'read -r greeting; eval "$greeting"; '
FIRST = "dd bs=1 count={} 2>/dev/null"      # of what goes by; the line is cut then


@pytest.mark.parametrize(("lines", "why"), [
    ("echo 'connect to host away: No route to host' >&2; exit 255", "No route to host"),
    ("sleep 30", "nothing was heard for 0.3 s"),
    (GREETED + "exit 255", "the line was lost"),
    (GREETED + FIRST.format(100) + " | /bin/sh -s; exit 255", "the line was lost"),
    (GREETED + "/bin/sh -s | " + FIRST.format(120) + "; exit 255", "the line was lost"),
    (GREETED + "sleep 30", "the line was lost: nothing was heard for 0.3 s"),
    ("bring", "the line was lost"),
    ("fetch", "the line was lost"),
])
@pytest.mark.parametrize("act", ["bring", "fetch"])
def test_lines_that_are_lost(make: Make, away: Path, here: Path, there: Path, lines: str, why: str, act: str) -> None:
    """Nothing gets its name that is not whole, wherever the line is cut, and the next try is a whole one."""
    if lines in ("bring", "fetch"):     # in the middle of the stream, and nothing is lost of the other direction
        act, half = lines, FIRST.format(60_000)
        lines = f"{GREETED} {half} | /bin/sh -s" if act == "bring" else f"{GREETED} /bin/sh -s | {half}; exit 255"
    source, target = (here, there) if act == "bring" else (there, here)
    before = seen(a_tree(source / "source"))
    item = Item(str(source / "source"), str(target / "target"), COPY)
    staged = make(item, out=(item,), idle_s=0.3 if "sleep" in lines else 20)
    (away / "trouble").write_text(lines)

    def stage() -> None:
        staged.bring(go) if act == "bring" else staged.fetch(SUCCESS, go)

    with pytest.raises(StagingError) as raised:
        stage()
    assert why in str(raised.value) and raised.value.transient and raised.value.away
    assert not (target / "target").exists() or "120" in lines       # of the answer
    (away / "trouble").unlink()
    replace(staged, idle_s=20).bring(go) if act == "bring" else replace(staged, idle_s=20).fetch(SUCCESS, go)
    assert seen(target / "target") == before and left_behind(here, there) == []


def test_a_full_disk_may_pass(make: Make, away: Path, here: Path, there: Path) -> None:
    (away / "bin" / "tar").write_text("#!/bin/sh\ncat >/dev/null\n"
                                      "echo 'tar: it: Cannot write: No space left on device' >&2\nexit 2\n")
    (away / "bin" / "tar").chmod(0o755)
    (here / "source").write_text("x" * 100_000)
    with pytest.raises(StagingError, match="No space left on device") as raised:
        make(Item(str(here / "source"), str(there / "a"), COPY)).bring(go)
    assert raised.value.transient and not raised.value.away
    assert os.listdir(there) == []


def _used_up(looks: list[bool]) -> bool:
    return looks.pop() if looks else True


def test_stopped(make: Make, here: Path, there: Path) -> None:
    """Also in the middle of a file."""
    (here / "source").write_bytes(b"x" * 1_000_000)
    for most in (1, 3, 8):
        looks = [False] * most
        with pytest.raises(StagingStopped):
            make(Item(str(here / "source"), str(there / "a"), COPY)).bring(partial(_used_up, looks))
    assert os.listdir(here) == ["source"] and not (there / "a").exists()


# --- hosts that lie ---------------------------------------------------------------------------------------------------

def member(name: str, kind: bytes = tarfile.REGTYPE, content: bytes = b"",
           link: str = "") -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, len(content), link
    return info, content


def archive(*members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.GNU_FORMAT) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as whole:
        for info, content in members:
            whole.addfile(info, io.BytesIO(content))
    return file.getvalue()


LINK = member("./a", tarfile.SYMTYPE, link="/tmp")
FOLDER = member("./a", tarfile.DIRTYPE)


@pytest.mark.parametrize("members", [
    (member("../x"),), (member("/etc/x"),), (FOLDER, member("./a/../../x")), (LINK, member("./a/x")), (member("b/x"),),
    (member("./a"), member("./a")), (LINK, FOLDER), (FOLDER, LINK), (LINK, member("./a", tarfile.LNKTYPE, link="./a")),
    (member("./a", tarfile.LNKTYPE, link="/etc/passwd"),), (member("./a", tarfile.LNKTYPE, link="../../x"),),
    (member("./a", tarfile.CHRTYPE),), (member("./a", tarfile.FIFOTYPE),), (member("./a", tarfile.GNUTYPE_SPARSE),),
    (member("./" + "n" * 300),), (member("./a", content=b"x" * 2_000),), (member(".", tarfile.SYMTYPE, link="/"),),
    (member("./a", tarfile.XHDTYPE, b"x" * (2 << 20)),), (member("./a", b"L", b"x" * (2 << 20)),),
])
def test_archives_that_lead_elsewhere(tmp_path: Path, members: tuple[Any, ...]) -> None:
    stream = io.BytesIO(archive(member(".", tarfile.DIRTYPE), *members))
    (tmp_path / "part").mkdir()
    with pytest.raises(OSError):
        unpack(stream.read, str(tmp_path / "part" / "it"), True, 1_000)
    assert [path for path in tmp_path.rglob("x")] == []


@pytest.mark.parametrize("content", [
    archive(), archive(member("a"), member("b")), archive(FOLDER), archive(LINK), b"no archive" * 600,
    archive(member("a", content=b"x" * 600))[:900], archive(member("a"))[:512] + b"x" * 512 + b"\0" * 1024])
def test_archives_of_a_file_that_are_none(tmp_path: Path, content: bytes) -> None:
    stream = io.BytesIO(content)

    def read(size: int) -> bytes:
        data = stream.read(size)
        if not data:
            raise OSError("the line was lost")
        return data

    with pytest.raises(OSError, match=r"archive|line|not a file"):
        unpack(read, str(tmp_path / "it"), False, 1_000)


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT])
def test_forms_of_archives(tmp_path: Path, form: int) -> None:
    """Those of GNU, BSD and BusyBox."""
    name = "d" * 80 + "/" + "n" * 60
    folder, file = member("./" + "d" * 80, tarfile.DIRTYPE), member(f"./{name}", content=b"x" * 513)
    file[0].mode, file[0].mtime = 0o4755, 5
    stream = io.BytesIO(archive(member("./", tarfile.DIRTYPE), folder, file, form=form))
    unpack(stream.read, str(tmp_path / "it"), True, 1_000)
    status = (tmp_path / "it" / name).stat()
    assert (status.st_size, stat.S_IMODE(status.st_mode), status.st_mtime) == (513, 0o755, 5)


# --- jobs -------------------------------------------------------------------------------------------------------------

@pytest.fixture
def stand(away: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    """Slurm's executor behind SSH."""
    monkeypatch.setattr(_staging, "_PAUSE_S", (0.1, 0.1))
    with stand_in(slurm, SlurmJobExecutor, tmp_path, monkeypatch, ssh_host="amy@away",
                  ssh_setup=f": {tmp_path}") as stand:
        stand.executor.work_directory = away / "home" / "work"
        yield stand


def test_a_job(stand: Stand, here: Path, there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files are there when it begins, and here when it has ended."""
    monkeypatch.chdir(here)
    (here / "in").write_text("input\n")
    states: list[JobState] = []
    job = a_job("cat data/in; echo more >> data/in", directory=Path("~/job"), stdout_path=Path("out"),
                stage_in={StageIn("in", Path("data/in"))}, cleanup={Path("data")},
                stage_out={StageOut("out", "results/out"), StageOut("data/in", "results/in", mode=MOVE),
                           StageOut("none", "results/none", StageOutFlags.IF_PRESENT)})
    job.set_job_status_callback(lambda job, status: states.append(status.state))
    stand.executor.submit(job)
    assert ended(job).state is JobState.COMPLETED, job.status
    assert {name: (here / "results" / name).read_text() for name in os.listdir(here / "results")} == {
        "out": "input\n", "in": "input\nmore\n"}
    assert os.listdir(there) == ["out"]
    assert [state for state in states if state is not JobState.ACTIVE][-3:] == [
        JobState.STAGE_OUT, JobState.CLEANUP, JobState.COMPLETED]


def test_a_job_whose_files_cannot_be_fetched_yet(stand: Stand, here: Path, away: Path,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    """While the line is away its end is not told; the files come when it is there again."""
    job = a_job("echo x > o", directory=Path("~/job"), stage_out={StageOut("o", here / "o")})
    fetch, tries = SSHStaging._fetch_one, []

    def late(staged: SSHStaging, *args: Any) -> None:
        tries.append(args)
        (away / "trouble").write_text("exit 255") if len(tries) == 1 else (away / "trouble").unlink(missing_ok=True)
        fetch(staged, *args)

    monkeypatch.setattr(SSHStaging, "_fetch_one", late)
    stand.executor.submit(job)
    assert ended(job).state is JobState.COMPLETED and len(tries) == 2
    assert (here / "o").read_text() == "x\n"


def test_a_job_whose_files_cannot_be_brought(stand: Stand, here: Path, away: Path) -> None:
    """A line that is lost is nobody's fault: the submission may be tried again. A file that is not there is."""
    (here / "in").write_text("input\n")
    job = a_job("true", directory=Path("~/job"), stage_in={StageIn(here / "in", Path("in"))})
    assert stand.executor.host.home
    (away / "trouble").write_text("exit 255")
    with pytest.raises(SubmitException, match=r"stage_in: cannot copy .*in: amy@away: ") as raised:
        stand.executor.submit(job)
    assert raised.value.transient and job.status.state is JobState.NEW
    (away / "trouble").unlink()
    for directory, source, why in (("~/none", "in", "home/none does not exist"), ("~/job", "no", "no does not exist")):
        other = a_job("true", directory=Path(directory), stage_in={StageIn(here / source, Path("in"))})
        stand.executor.submit(other)
        assert other.status.state is JobState.FAILED and other.native_id is None
        assert (other.status.message or "").endswith(why)
    stand.executor.submit(job)
    assert ended(job).state is JobState.COMPLETED and len(stand.lab.calls("sbatch")) == 1
