"""Site profiles: what they answer, and that a wrong one is refused with the path of every key."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

from sssjob.conversion.converting import Conversion, Options
from sssjob.conversion.site import Site, SiteError, read_site
from sssjob.translators import get

PAGE = (Path(__file__).parents[2] / "docs" / "profiles.md").read_text()
EXAMPLE = re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)


def converted(text: bytes, source: str, target: str, site: str | None) -> tuple[str, list[str]]:
    """The text, and the messages of findings of the kind site-dependent."""
    how = Conversion(source, target, site=read_site(f'name = "a"\n{site}') if site is not None else None)
    reader, _ = how.reader(text, "x")
    context = how.reading(reader, "x")
    document = how.read(reader, text, context)
    made = how.text(document, how.writing(context.findings, how.carrying(reader)))
    return made, [f.message for f in context.findings if f.kind == "site-dependent"]


def test_the_example_of_the_page_is_read_whole() -> None:
    """And every key that there is stands in the page."""
    assert EXAMPLE is not None
    site = read_site(EXAMPLE[1])
    assert site.model_fields_set == set(Site.model_fields)
    assert site.sge.spread(None) is None and site.sge.smp() == "smp"
    for name in (*Site.model_fields, *type(site.lsf).model_fields, *type(site.sge).model_fields):
        assert name in PAGE
    assert pickle.loads(pickle.dumps(site)) == site       # it goes to other processes


@pytest.mark.parametrize(("text", "problems"), [
    ("x = 1", ["name: is not said", "x: no such key"]),
    ('name = "a"\ncores_per_node = 0', ["cores_per_node: has to be greater than or equal to 1"]),
    ('name = "a"\ncores_per_node = true', ["cores_per_node: has to be a whole number"]),
    ('name = "a"\ntimezone = "Mars/X"', ["timezone: 'Mars/X' is no time zone, as Europe/Berlin"]),
    ('name = "a"\n[map.Duration]\na = "b"',
     ["map.Duration: 'Duration' is no property that holds a name, as Queue or Project"]),
    ('name = "a"\n[map.Queue]\na = 1', ["map.Queue.a: has to be a text"]),
    ('name = "a"\n[map.Queue]\na = "b\\u001b"', ["map.Queue.a: holds a control character"]),
    ('name = "a"\n[sge.pe."my pe"]\nallocation_rule = "all"',
     ['sge.pe."my pe".allocation_rule: $pe_slots, $fill_up, $round_robin or a number of slots a host']),
    ('name = "a"\n[lsf]\nunit_for_limits = "kB"',
     ["lsf.unit_for_limits: 'kB' is none of 'KB', 'MB', 'GB', 'TB', 'PB' or 'EB'"]),
    ('name = "a"\nmashine = "m"\n[ssh]\nhost = "h"\nsetups = "x"\n[queues.long]\ndurations = 3\n[run]\nquue = "x"',
     ["ssh.setups: no such key (did you mean 'setup'?)",
      "queues.long.durations: no such key (did you mean 'duration'?)",
      "run: quue: no such setting (did you mean 'queue'?)", "mashine: no such key (did you mean 'machine'?)"]),
    ("= 1", ["not TOML: Invalid statement (at line 1, column 1)"]),
    ("a = " + "[" * 5000, ["nested too deep"]),
])
def test_a_wrong_profile_names_every_key(text: str, problems: list[str]) -> None:
    with pytest.raises(SiteError) as caught:
        read_site(text, "s.toml")
    assert list(caught.value.problems) == problems
    assert str(caught.value) == f"s.toml: {'; '.join(problems)}"


def test_not_utf_8() -> None:
    with pytest.raises(SiteError, match=r"^-: not UTF-8: byte 0xff at 8$"):
        read_site(b"name = '\xff'")


def test_names_of_the_other_site_become_those_of_this_one() -> None:
    """Aliases of a property are meant too; an empty name leaves it out; a mapped directive keeps its place."""
    text = b"#!/bin/sh\n#SBATCH -p debug\n#SBATCH -A phys\n#SBATCH -q normal\n#SBATCH -C ib\n"
    site = '[map.Queue]\ndebug = "test"\n[map.Account]\nphys = "p17"\n[map.QualityOfService]\nnormal = ""\n' \
           '[map.Feature]\nib = "infiniband"\n'
    output, _ = converted(text, "slurm", "slurm", site)
    assert output == ("#!/bin/sh\n#SBATCH --partition=test\n#SBATCH --account=p17\n#SBATCH --constraint=infiniband\n")


@pytest.mark.parametrize(("zone", "stamp"), [("Europe/Berlin", 1767222000), ("America/New_York", 1767243600)])
def test_times_of_day_are_those_of_the_zone(zone: str, stamp: int) -> None:
    """Without a profile the clock is taken as UTC, which is told; with one the moment is right and nothing is."""
    text = b"#!/bin/sh\n#SBATCH --begin=2026-01-01T00:00:00\n"
    plain, findings = converted(text, "slurm", "sss", None)
    assert "2026-01-01T00:00:00Z" in plain or "1767225600" in plain
    assert findings == ["--begin 2026-01-01T00:00:00: the clock of the site is taken as UTC"]
    document = get("slurm").read(text, Conversion("slurm", "sss", site=read_site(
        f'name = "a"\ntimezone = "{zone}"')).reading(get("slurm"), "x"))
    assert next(document.jobs())[0].value("EligibleTime") == stamp
    output, findings = converted(text, "slurm", "pbspro", f'timezone = "{zone}"')
    assert "#PBS -a 202601010000\n" in output and findings == []


def test_the_clock_and_its_way_back() -> None:
    """Summer and winter, for every hour around both changes but for the hour that is there twice."""
    site = read_site('name = "a"\ntimezone = "Europe/Berlin"')
    for start in (1774746000 - 7200, 1792889000, 0):
        for stamp in range(start, start + 4 * 3600, 900):
            local = site.clock(stamp)
            assert local is not None and site.stamp(local) in (stamp, stamp - 3600)
    assert read_site('name = "a"').stamp(0) is None and read_site('name = "a"').clock(0) is None


def test_amounts_per_node_where_no_nodes_are_said() -> None:
    """64 GB a node for 96 tasks are 128 GB on nodes of 48 cores; without a profile nobody knows, which is told."""
    text = b"#!/bin/sh\n#SBATCH -n 96\n#SBATCH --mem=64G\n"
    made, told = converted(text, "slurm", "pbspro", None)
    assert "select=96:ncpus=1:mpiprocs=1:mem=64gb" in made and "cores_per_node of a site profile" in told[0]
    made, told = converted(text, "slurm", "pbspro", "cores_per_node = 48")
    assert made == "#!/bin/sh\n#PBS -l select=2:ncpus=48:mpiprocs=48:mem=64gb\n#PBS -l place=scatter\n" and told == []


@pytest.mark.parametrize(("line", "expected"), [
    ("module load gcc/9", "module load GCC/9.3.0"), ("module add gcc/9 other", "module add GCC/9.3.0 other"),
    ("ml gcc/9 gone", "ml GCC/9.3.0"), ("module load gone", ":"), ("if true; then module load gone; fi",
                                                                  "if true; then :; fi"),
    ("module swap gcc/9 odd", "module swap GCC/9.3.0 'a b'"), ("ml -q gcc/9", "ml -q GCC/9.3.0"),
    # nothing but the command is touched
    ("echo module load gcc/9", "echo module load gcc/9"), ("# module load gcc/9", "# module load gcc/9"),
    ("cat gcc/9", "cat gcc/9"), ("module load gcc/91", "module load gcc/91"), ("./module gcc/9", "./module gcc/9"),
])
def test_names_of_modules(line: str, expected: str) -> None:
    pytest.importorskip("tree_sitter_bash")
    site = '[modules]\n"gcc/9" = "GCC/9.3.0"\ngone = ""\nodd = "a b"\n'
    text = f"#!/bin/sh\n#SBATCH -J a\n{line}\n".encode()
    assert converted(text, "slurm", "slurm", site)[0] == f"#!/bin/sh\n#SBATCH --job-name=a\n{expected}\n"


def test_options_of_a_format_and_of_records() -> None:
    """Those of the command line win; those of the site need no format that asks for them."""
    site = read_site('name = "a"\nmachine = "m"\ntimezone = "Europe/Berlin"\n'
                     '[options.sss-json]\nindent = "0"\nfoo = "1"\n')
    how = Conversion("sacct", "sss-json", options=Options({"machine": "given"}), site=site)
    assert dict(how.reading(get("sacct"), "x").options) == {"machine": "given", "timezone": "Europe/Berlin"}
    assert how.writing(how.reading(get("sacct"), "x").findings, None).options["indent"] == "0"
    how.options.asked.add("machine")
    how.options.check("sacct", "sss-json")
