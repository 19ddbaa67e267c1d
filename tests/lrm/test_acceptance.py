"""What each submit command refuses, and what it takes. Those of Slurm and Grid Engine were tried on real ones."""

from __future__ import annotations

import pytest

from sssjob.lrm.acceptance import judge_of

Options = list[tuple[str, str | None]]


def alone(option: str, value: str) -> Options:
    """The options of a script with this one."""
    return [(option, value)]


REFUSED: list[tuple[str, Options, list[str]]] = [
    ("pbspro", [("-J", "3-3")], ["-J the end of a range is above its start"]),
    ("pbspro", [("-J", "3-1")], ["-J the end of a range is above its start"]),
    ("pbspro", [("-J", "1-5:0")], ["-J a step is at least 1"]),
    ("pbspro", [("-J", "3")], ["-J is no range of indices"]),
    ("pbspro", [("-N", "x y")], ["-N contains ' '"]),
    ("pbspro", [("-N", "n" * 231)], ["-N has more than 230 characters"]),
    ("pbspro", [("-q", "a,b")], ["-q names several; there is one destination"]),
    # what its own qsub says, "cannot submit non-rerunable Array Job": of Slurm's --no-requeue with --array came both
    ("pbspro", [("-J", "0-9"), ("-r", "n"), ("-I", None)],
     ["-r an array may always be run again", "-I an array is not interactive"]),
    ("pbspro", [("-p", "5000")], ["-p is not from -1024 to 1023"]),
    ("pbspro", [("-l select", "2"), ("-l mem", "4gb"), ("-l ncpus", "2")],
     ["-l ncpus -l ncpus and -l select exclude each other", "-l mem -l mem and -l select exclude each other"]),
    ("pbspro", [("-l place", "excl"), ("-l ngpus", "2")], ["-l ngpus -l ngpus and -l place exclude each other"]),
    # the words of a qsub of OpenPBS 23.06, of which lint said nothing
    ("pbspro", [("-l place", "excl")], ["-l place it goes beside -l select alone"]),
    ("pbspro", [("-J", "1-3"), ("-l min_walltime", "60")], ["-l min_walltime an array has none"]),
    ("pbspro", [("-l max_walltime", "60"), ("-l nodect", "2"), ("-W max_run_subjobs", "2")],
     ["-l nodect nobody may ask for it", "-l max_walltime it goes beside -l min_walltime alone",
      "-W max_run_subjobs only an array has it"]),
    *(("pbspro", [*alone(option, value), ("-l select", "1")], [f"{option} {why}"]) for option, values, why in (
        ("-a", ("0", "012", "abc", "15:30", "20301201153", "-5"), "is no time that qsub reads, as 203012312359.30"),
        ("-c", ("u", "cs", "c=0", "s=5", "none"), "is none of n, s, c, w, c=MINUTES, w=MINUTES"),
        ("-k", ("d", "u", "no", "O"), "is n, or letters of oe; d may stand beside them"),
        ("-M", ("a@", "@b", "a,", "a,,b"), "names nobody before or behind an @ or a comma"),
        ("-P", ("a/b", "[x]", "a;b", "p:q", "p*"), 'holds one of the characters [ ] / " ; : | < > + , ? *'),
        ("-q", ("workq@", "@", "w" * 16),
         "is no queue, which has at most 15 characters, with or without @ and a server"),
        ("-R", ("n", "x"), "is not of the letters o and e"),
        ("-S", ("bash", "/bin/bash,/bin/sh", "/bin/bash@", "@h", "/bin/sh,"),
         "is no whole path of a shell, nor several of which all but one have an @ and a host"),
        ("-W depend", ("afterok", "foo:1", "on:0", "on", "afterok:abc", "afterok:8[1]", "AFTEROK:2", "afterok:2,",
                       "afterok:2;afterany:3"), "is no dependency, as afterok:12:13,on:2"),
        ("-W stagein", ("a", "a@b", "@h:b", "a@h:"), "is no file, as LOCAL@HOST:REMOTE"),
        ("-W sandbox", ("x", ""), "is none of PRIVATE, HOME, O_WORKDIR"),
        ("-l place", ("foo", "pack:free", "excl:excl", "pack:", "group=", ":excl"),
         "is not one each of free, pack, scatter, vscatter; excl, exclhost, shared; group=NAME"),
    ) for value in values),
    *(("pbspro", alone("-l select", value), [f"-l select {why}"]) for value, why in (
        ("0", "asks for no chunk"), ("1:ncpus=4:ncpus=8", "a chunk has ncpus once"),
        ("2:ncpus=1+1:pmem=1gb", "pmem is of a whole job, not of a chunk"))),
    ("torque", [("-t", "1,5-3")], ["-t a range runs backwards"]),
    ("torque", [("-q", "a,b")], ["-q names several; there is one destination"]),
    ("slurm", [("--array", "5-3")], ["--array a range runs backwards"]),
    ("slurm", [("--array", "1-3:0")], ["--array a step is at least 1"]),
    ("slurm", [("--ntasks", "0"), ("--cpus-per-task", "0")],
     [f"{name} is no whole number of at least 1" for name in ("--ntasks", "--cpus-per-task")]),
    ("slurm", [("--job-name", "n" * 1025)], ["--job-name has more than 1024 characters"]),
    ("slurm", [("--mem", "1G"), ("--mem-per-cpu", "1G")],
     ["--mem-per-cpu --mem and --mem-per-cpu exclude each other"]),
    ("slurm", [("--gpus-per-task", "1")], ["--gpus-per-task --gpus-per-task wants --ntasks or --gpus"]),
    ("slurm", [("--gpus-per-socket", "1")], ["--gpus-per-socket --gpus-per-socket wants --sockets-per-node"]),
    ("slurm", [("--mem-per-gpu", "1G")], ["--mem-per-gpu --mem-per-gpu wants an option that asks for GPUs"]),
    ("slurm", [("--priority", "-3")], ["--priority is not from 0 to 4294967293"]),
    ("slurm", [("--priority", "4294967294")], ["--priority is not from 0 to 4294967293"]),
    *(("slurm", alone(option, value), [f"{option} {why}"]) for option, value, why in (
        ("--open-mode", "x", "is neither append nor truncate"),
        ("--kill-on-invalid-dep", "maybe", "is neither yes nor no"),
        ("--wait-all-nodes", "2", "is neither 0 nor 1"), ("--hint", "foo",
         "is none of compute_bound, memory_bound, multithread, nomultithread"),
        *(("--signal", value, "is no signal with the seconds before the end, as B:USR1@60")
          for value in ("USR9@60", "B:USR1@999999", "X:USR1", "USR1@x", "0")),
        *(("--distribution", value, "is no distribution of tasks, as block:cyclic")
          for value in ("foo", "block:foo", "plane")),
        ("--exclusive", "foo", "is neither user nor mcs"), ("--propagate", "FOO", "names no limit that Slurm knows"),
        ("--profile", "x", "is none of all, none, energy, task, filesystem, network"),
        *(("--dependency", value, "begins with no kind of dependency, as afterok:123")
          for value in ("foo:1", "afterok", "singleton:1", "x12")),
        ("--switches", "x", "begins with no number of switches"), ("--acctg-freq", "x", "is no number of seconds"),
        *(("--licenses", value, "has no whole number behind the name of a license") for value in ("a:x", "a:0")),
        ("--thread-spec", "x", "is no whole number"),
        ("--exclude", "n[1-", "has a bracket without the other one"),
        *((name, value, "is no whole number of at least 1") for name in ("--sockets-per-node", "--mincpus")
          for value in ("x", "2-4", "2k", "0", "-1")),
        *(("--extra-node-info", value, "is no number of sockets, cores and threads, as 2:4:1")
          for value in ("x", "2:x", "1:1:y", "-2")),
        *((name, value, "is no time that sbatch reads, as 2030-01-31T16:00, 16:00 or now+2hours")
          for name in ("--begin", "--deadline")
          for value in ("monday", "16", "16:00AM", "2030-1-1", "2030-13-01", "01/02/2030", "2030-01-01T10", "Tomorrow",
                        "2030-01-01T25:00", "12:60", "now+", "now+2min", "1:2:3:4", "2030-01-01T10:00:00Z")),
        *(("--delay-boot", value, "is no time") for value in ("x", "10min", "1:", "1-2:3:")),
        *(("--get-user-env", value, "is no number of seconds with S or L behind it") for value in ("99X", "X")),
        ("--no-kill", "on", "takes no value but off"),
        *(("--gpu-bind", value, "binds tasks to no GPU, as closest or single:2")
          for value in ("foo", "map_gpu:0,x", "map_gpu:0*x", "mask_gpu:zz", "single:-1", "v,closest", "verbose", "",
                        f"map_gpu:{'1' * 5000}x")),
        *(("--gpu-freq", value, "is no frequency of GPUs, as medium,memory=high")
          for value in ("foo", "memory=x", "High", "1x", "")),
        *(("--cpu-freq", value, "is no frequency and no governor of CPUs, as low-high:OnDemand")
          for value in ("foo", "high:ondemand", "ondemand:performance", "verbose", "", "p", "ond", "0", "m1",
                        "low-:ondemand", "1000-2000:foo")),
        *(("--mem-bind", value, "binds tasks to no memory, as local") for value in (
            "foo", "v,foo", "map_mem:x", "", "qlocal", f"map_mem:{'1' * 5000}x", f"mask_mem:{'a,' * 5000}x")))),
    *(("slurm", alone("--time", time) + alone("--time-min", least), [f"--time-min is more than --time {time}"])
      for time, least in (("5", "10"), ("1:0:0", "61:0"), ("1:0:0", "1-"), ("5", "0"))),
    ("slurm", [("--core-spec", "1"), ("--thread-spec", "1")],
     ["--thread-spec --core-spec and --thread-spec exclude each other"]),
    ("lsf", [("-sp", "0")], ["-sp is not from 1 to 2147483647"]),
    ("htcondor", [("executable", "a"), ("priority", "-2147483649")],
     ["priority is not from -2147483648 to 2147483647"]),
    ("sge", [("-t", "0-3")], ["-t tasks are counted from 1"]),
    ("sge", [("-t", "1-3:0")], ["-t a step is at least 1"]),
    ("sge", [("-tc", "4")], ["-tc -tc wants -t"]),
    ("sge", [("-hold_jid_ad", "1")], ["-hold_jid_ad -hold_jid_ad wants -t"]),
    ("sge", [("-masterq", "all.q")], ["-masterq -masterq wants -pe"]),
    ("sge", [("-ac", "=x"), ("-v", "A=1,=2")], ["-ac names no variable before =", "-v names no variable before ="]),
    ("sge", [("-N", "1a"), ("-A", "x/y"), ("-P", "x y")],
     ["-N begins with a digit", "-A contains '/'", "-P contains ' '"]),
    ("sge", [("-N", "n" * 600)], ["-N has more than 511 characters"]),
    ("sge", [("-pe", "smp 0")], ["-pe asks for no slots"]),
    ("sge", [("-p", "-2000")], ["-p is not from -1023 to 1024"]),
    ("lsf", [("-J", "a[0-3]")], ["-J indices are counted from 1, upwards"]),
    ("lsf", [("-J", "a[3-1]")], ["-J indices are counted from 1, upwards"]),
    ("lsf", [("-n", "8,4")], ["-n the most is less than the least"]),
    ("lsf", [("-n", "0")], ["-n asks for no slots"]),
    ("flux", [("--nodes", "0"), ("--nslots", "1")], ["--nodes is below 1"]),
    ("flux", [("--nslots", "0")], ["--nslots asks for no slots"]),
    ("flux", [("--nslots", "1"), ("--cores-per-slot", "0")], ["--cores-per-slot is below 1"]),
    ("flux", [("--nodes", "4"), ("--nslots", "2")], ["--nodes 4 nodes for 2 slots"]),
    ("flux", [("--nslots", "2"), ("--exclusive", None)], ["--exclusive --exclusive wants --nodes"]),
    ("flux", [("--queue", "a,b")], ["--queue names several; there is one queue"]),
    ("cobalt", [("--queue", "a")], ["--nodecount a number of nodes is required", "--time a time limit is required"]),
    ("cobalt", [("--nodecount", "0"), ("--time", "10")], ["--nodecount is below 1"]),
    ("htcondor", [("request_cpus", "1")], ["executable neither an executable nor a container is named"]),
    ("htcondor", [("executable", "a"), ("accounting_group", "a b")], ["accounting_group holds a blank"]),
    ("htcondor", [("executable", " ")], ["executable neither an executable nor a container is named"]),
]
TAKEN: list[tuple[str, Options]] = [
    ("pbspro", [("-J", "3-4:2%5"), ("-N", "a.b"), ("-q", "a@b"), ("-l select", "2"), ("-l pmem", "1gb")]),
    *(("pbspro", [*alone(option, value), ("-l select", "1")]) for option, values in (
        ("-a", ("1530", "202612011200.30")), ("-c", ("c=10", "w")), ("-k", ("doe", "n", "dn")), ("-R", ("oe",)),
        ("-M", ("a@b, c", " a")), ("-P", ("pr oj", "p=q")), ("-q", ("@h", "w" * 15, "a:b@h")),
        ("-S", ("/bin/sh,/bin/bash@h", "/bin/sh@h,/bin/bash")), ("-W sandbox", ("private",)),
        ("-W depend", ("afterok:8[].h:2@h,on:2", "before:3", "runone:4")), ("-W stagein", ("a@h:b,c@h:d:e",)),
        ("-l place", ("excl:PACK", "group=host:scatter:shared", "exclhost"))) for value in values),
    ("torque", [("-t", "1,3-5%2"), ("-l nodes", "2"), ("-l mem", "4gb")]),
    ("slurm", [("--array", "0-9:3,12%0"), ("--partition", "a,b"), ("--gpus-per-task", "1"), ("--ntasks", "2")]),
    ("slurm", [("--array", ""), ("--nodes", "1"), ("--mem", "0"), ("--gpus", "0")]),
    *(("slurm", alone(option, value)) for option, value in (
        ("--open-mode", "A"), ("--kill-on-invalid-dep", "YES"), ("--wait-all-nodes", "1"), ("--hint", "nomultithread"),
        ("--signal", "B:SIGUSR1@60"), ("--signal", "rb:10"), ("--signal", "usr2"), ("--distribution", "plane=4"),
        ("--distribution", "cyclic:fcyclic,Pack"), ("--distribution", "*:block"), ("--exclusive", "user"),
        ("--profile", "task,energy"), ("--propagate", "NONE"), ("--propagate", "CORE,RLIMIT_STACK"),
        ("--dependency", "singleton"), ("--dependency", "12"), ("--signal", "USR1@"),
        ("--switches", "1@10:00"), ("--mincpus", "1"), ("--sockets-per-node", "2"), ("--no-kill", "OFF"),
        *(("--array", value) for value in ("[1-12,20]", "[1-4]%2", "[1-4%2]", "[1-4", "1-4]", "[1]-4", "[1-3],[5-6]")),
        *(("--begin", value) for value in (
            "16:00", "4:00PM", "1/2/30", "01.02.30", "010230", "0102", "tomorrow-16:00", "2030-01-01-10:00", "teatime",
            "10:00-2030-01-01", "16:00T2030-01-01", "now+1", "now-1hour", "now+2Days", "NOON", "uts1900000000")),
        *(("--delay-boot", value) for value in ("10", "1:2:3", "1-", "INFINITE")),
        *(("--get-user-env", value) for value in ("9", "9L", "S")),
        *(("--extra-node-info", value) for value in ("1", "1:1:1", "1-2:1", "1:1:1:1")),
        *(("--gpu-bind", value) for value in (
            "closest", "verbose,Closest", "map_gpu:0,1", "map_gpu:0*4,1", "mask_gpu:0x3,3", "single:2", "per_task:1")),
        *(("--gpu-freq", value) for value in ("450", "medium,memory=high,verbose", "verbose", "low,,high")),
        *(("--cpu-freq", value) for value in ("high", "2400000", "performance", "low-high:ondemand", "low-high", "perf",
                                              "user", "lo")),
        *(("--mem-bind", value) for value in ("verbose,local", "map_mem:0,1", "mask_mem:0x3", "none,sort", "P")))),
    ("slurm", [("--time", "10"), ("--time-min", "10")]), ("slurm", [("--time", "0"), ("--time-min", "5")]),
    ("sge", [("-t", "5-3"), ("-tc", "0"), ("-q", "all.q,short.q"), ("-N", "a,b"), ("-pe", "smp 4-2")]),
    ("sge", alone("-tc", "0")),
    ("lsf", [("-J", "my job[1-10:2,20]%4"), ("-n", "4,8"), ("-q", "a b")]),
    ("flux", [("--nodes", "2"), ("--nslots", "4"), ("--exclusive", None), ("--gpus-per-slot", "0")]),
    ("cobalt", [("--nodecount", "1"), ("--time", "10")]),
    ("htcondor", [("container_image", "a.sif")]),
]


@pytest.mark.parametrize(("name", "options", "refusals"), REFUSED, ids=lambda value: str(value)[:60])
def test_refused(name: str, options: Options, refusals: list[str]) -> None:
    judge = judge_of(name)
    assert judge is not None
    assert [f"{r.option} {r.why}" for r in judge.refusals(options)] == refusals


@pytest.mark.parametrize(("name", "options"), TAKEN, ids=lambda value: str(value)[:60])
def test_taken(name: str, options: Options) -> None:
    judge = judge_of(name)
    assert judge is not None
    assert judge.refusals(options) == []


def test_formats_that_are_no_managers_have_no_judge() -> None:
    assert judge_of("sss") is None
