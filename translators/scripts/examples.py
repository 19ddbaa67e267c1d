"""One example of each attribute of a job in each dialect that has it, and the attributes that have no property here.

The rows are those of sbatch(1), qsub(1B), submit(1), bsub of the LSF 10.1 reference, qsub of Cobalt, condor_submit(1)
and flux-batch(1). ``docs/reference/options.md`` is made of them, and tests hold them against what the readers do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sssjob.translators.registry import SCRIPT_FORMATS
from sssjob.translators.scripts.rows import Dialect, dialect_of, dialects

__all__ = ["EXAMPLES", "GAPS", "SPELLED", "WITHOUT", "examples", "gaps", "script", "without"]

#: Attribute -> dialect -> options.
EXAMPLES: Final[dict[str, dict[str, str]]] = {
    "job name": {"slurm": "-J x", "pbspro": "-N x", "torque": "-N x", "lsf": "-J x", "sge": "-N x",
        "cobalt": "--jobname x", "htcondor": "batch_name = x", "flux": "--job-name=x"},
    "queue": {"slurm": "-p a,b", "pbspro": "-q a@s", "torque": "-q a@s", "lsf": '-q "a b"', "sge": "-q a.q,b.q@h",
        "cobalt": "-q a", "flux": "-q a"},
    "account": {"slurm": "-A x", "pbspro": "-A x", "torque": "-A x", "lsf": "-P x", "sge": "-P x", "cobalt": "-A x",
        "htcondor": "accounting_group = x", "flux": "-B x"},
    "project (second)": {"slurm": "--wckey=x", "pbspro": "-A a -P x", "lsf": "-Lp x", "sge": "-A x",
        "htcondor": "accounting_group_user = x", "flux": "--setattr=project=x"},
    "unix group": {"slurm": "--gid=g", "pbspro": "-W group_list=g", "torque": "-W group_list=g", "lsf": "-G g"},
    "qos": {"slurm": "-q high", "torque": "-l qos=high", "pbspro": "-l qos=high", "lsf": "-sla x"},
    "reservation": {"slurm": "--reservation=r", "torque": "-l advres=r", "lsf": "-U r", "sge": "-ar 7",
        "cobalt": "--attrs a=b -q R.x", "pbspro": "-q R123"},
    "cluster": {"slurm": "-M c", "lsf": "-clusters c", "pbspro": "-q @s", "torque": "-q @s"},
    "comment": {"slurm": "--comment=x", "lsf": "-Jd x", "sge": "-ac a=b", "htcondor": "MY.Note = x",
        "torque": "-W x=Y", "flux": "--setattr=user.x=y"},
    "user": {"slurm": "--uid=u", "pbspro": "-u u", "torque": "-u u", "sge": "-u u", "cobalt": "--run_users u"},
    "application": {"pbspro": "-l software=x", "torque": "-l software=x", "lsf": "-app x"},
    "wall limit": {"slurm": "-t 5", "pbspro": "-l walltime=300", "torque": "-l walltime=300", "lsf": "-W 5",
        "sge": "-l h_rt=300", "cobalt": "-t 5", "htcondor": "allowed_execute_duration = 300", "flux": "-t 5"},
    "shortest useful": {"slurm": "--time-min=5", "pbspro": "-l min_walltime=300", "lsf": "-We 5"},
    "cpu time": {"pbspro": "-l cput=300", "torque": "-l cput=300", "lsf": "-c 5", "sge": "-l h_cpu=300"},
    "cpu time of a process": {"pbspro": "-l pcput=300", "torque": "-l pcput=300", "sge": "-l s_cpu=300"},
    "begin": {"slurm": "-b 2030-01-01", "pbspro": "-a 203001010000", "torque": "-a 203001010000",
        "lsf": "-b 2030:1:1:0:0", "sge": "-a 203001010000", "htcondor": "deferral_time = 1893456000",
        "flux": '--begin-time="2030-01-01 00:00:00"'},
    "begin, some time from now": {"slurm": "-b now+1hour", "flux": "--begin-time=+1h"},
    "begin, the next such hour": {"slurm": "-b 23:00", "pbspro": "-a 2300", "torque": "-a 2300", "lsf": "-b 23:00"},
    "begin, the next such day of a month": {"pbspro": "-a 312300", "torque": "-a 312300", "lsf": "-b 31:23:00"},
    "begin, the next such day of a year": {"slurm": "-b 12/31-23:00", "pbspro": "-a 12312300", "torque": "-a 12312300",
        "lsf": "-b 12:31:23:00", "sge": "-a 12312300"},
    "deadline": {"slurm": "--deadline=2030-01-01", "lsf": "-t 2030:1:1:0:0", "sge": "-dl 203001010000"},
    "nodes": {"slurm": "-N 2", "pbspro": "-l select=2 -l place=scatter", "torque": "-l nodes=2", "lsf": "-nnodes 2",
        "cobalt": "-n 2", "htcondor": "machine_count = 2", "flux": "-N 2 -n 2"},
    "nodes, a range": {"slurm": "-N 2-4"},
    "tasks": {"slurm": "-n 4", "pbspro": "-l select=2:ncpus=2:mpiprocs=2", "torque": "-l procs=4", "lsf": "-n 4",
        "sge": "-pe mpi 4", "cobalt": "-n 2 --proccount 4", "flux": "-n 4"},
    "tasks per node": {"slurm": "--ntasks-per-node=4", "pbspro": "-l select=2:mpiprocs=4 -l place=scatter",
        "torque": "-l nodes=2:ppn=4", "lsf": '-n 8 -R "span[ptile=4]"', "cobalt": "-n 2 --mode c4"},
    "one host": {"slurm": "-N1", "pbspro": "-l select=2 -l place=pack", "torque": "-l nodes=1",
        "lsf": '-n 4 -R "span[hosts=1]"', "cobalt": "-n 1", "flux": "-N1 -n1"},
    "cpus per task": {"slurm": "-c 4", "pbspro": "-l select=2:ncpus=4:mpiprocs=2",
        "lsf": '-R "affinity[core(4)*1]"', "htcondor": "request_cpus = 4",
        "flux": "-n 1 -c 4"},
    "cpus in all": {"pbspro": "-l ncpus=4", "torque": "-l ncpus=4", "sge": "-pe smp 4"},
    "threads": {"slurm": "--threads-per-core=2", "pbspro": "-l select=1:ncpus=4:ompthreads=4",
        "sge": "-binding linear:4", "lsf": '-R "affinity[thread(2)]"'},
    "hint": {"slurm": "--hint=nomultithread"},
    "different kinds of node": {"slurm": "-n 1\n#SBATCH hetjob\n#SBATCH -n 2",
        "pbspro": "-l select=1:ncpus=2+2:ncpus=4", "torque": "-l nodes=1:ppn=2+2:ppn=4",
        "lsf": '-R "1*{span[hosts=1]}+2*{select[a]}"'},
    "contiguous": {"slurm": "--contiguous", "pbspro": "-l select=1 -l place=group=x", "lsf": '-R "cu[type=a]"'},
    "switches": {"slurm": "--switches=1"},
    "memory of a node": {"slurm": "--mem=4G", "lsf": '-R "rusage[mem=4GB]"', "htcondor": "request_memory = 4GB"},
    "memory of a cpu or slot": {"slurm": "--mem-per-cpu=4G", "sge": "-l h_vmem=4G"},
    "memory of a gpu": {"slurm": "--mem-per-gpu=4G"},
    "all memory": {"slurm": "--mem=0"},
    "memory of a chunk": {"pbspro": "-l select=1:mem=4gb"},
    "memory of the job": {"pbspro": "-l mem=4gb", "torque": "-l mem=4gb"},
    "memory of a process": {"pbspro": "-l pmem=4gb", "torque": "-l pmem=4gb", "lsf": "-M 4GB"},
    "virtual memory": {"pbspro": "-l vmem=4gb", "torque": "-l pvmem=4gb", "lsf": "-v 4GB", "sge": "-l s_vmem=4G"},
    "memory of a task": {"lsf": '-R "rusage[mem=4GB/task]"'},
    "resident memory": {"sge": "-l h_rss=4G"},
    "gpus per node": {"slurm": "--gres=gpu:2", "pbspro": "-l select=1:ngpus=2", "torque": "-l nodes=1:gpus=2",
        "lsf": "-gpu num=2"},
    "gpus per job": {"slurm": "-G 2", "htcondor": "request_gpus = 2"},
    "gpus per task": {"slurm": "-n 1 --gpus-per-task=2", "lsf": "-gpu num=2/task", "flux": "-n 1 -g 2"},
    "gpus of the site": {"sge": "-l gpu=2"},
    "type of gpu": {"slurm": "-G a100:2", "pbspro": "-l select=1:ngpus=2:gpu_type=a100",
        "lsf": "-gpu num=2:gmodel=a100", "htcondor": "request_gpus = 2\nrequire_gpus = Capability > 8",
        "torque": "-l nodes=1:gpus=2:a100", "sge": "-l gpu=1,gpu_type=a100"},
    "exclusive node": {"slurm": "--exclusive", "pbspro": "-l select=1 -l place=excl", "torque": "-n", "lsf": "-x",
        "sge": "-l exclusive=true", "flux": "-x -N1"},
    "exclusive node, by the site": {"htcondor": "+RequiresWholeMachine = True"},
    "share": {"slurm": "-s", "pbspro": "-l select=1 -l place=shared"},
    "features": {"slurm": "-C a", "pbspro": "-l select=1:a=true", "torque": "-l nodes=1:a", "lsf": '-R "select[a]"',
        "sge": "-l a", "cobalt": "-n 1 --attrs a=b", "htcondor": "requirements = HasA", "flux": "--requires=a"},
    "features, expressions": {"slurm": '-C "a|b"', "lsf": '-R "select[a||b]"', "htcondor": "requirements = A || B",
        "flux": '--requires="a|b"'},
    "licences": {"slurm": "-L a:2", "pbspro": "-l a=2", "torque": "-l gres=a:2", "lsf": '-R "rusage[a=2]"',
        "sge": "-l a=2", "htcondor": "concurrency_limits = a:2"},
    "other counted resource": {"slurm": "--gres=x:2", "pbspro": "-l x=2", "torque": "-l other=x",
        "lsf": '-R "rusage[x=2]"', "sge": "-l x=2", "htcondor": "request_x = 2"},
    "node list": {"slurm": "-w n1", "pbspro": "-l select=1:host=n1", "torque": "-l nodes=n1", "lsf": "-m n1",
        "sge": "-l h=n1", "cobalt": "-n 1 --attrs location=n1", "htcondor": 'requirements = Machine == "n1"',
        "flux": "--requires=host:n1"},
    "several candidates": {"lsf": '-m "n1 n2"', "sge": "-q a@n1"},
    "exclude": {"slurm": "-x n1", "lsf": '-R "select[hname!=n1]"', "sge": "-l h=!n1",
        "htcondor": 'requirements = Machine != "n1"', "flux": "--requires=-host:n1"},
    "scratch disk": {"slurm": "--tmp=4G", "pbspro": "-l file=4gb", "torque": "-l file=4gb",
        "lsf": '-R "rusage[tmp=4GB]"', "htcondor": "request_disk = 4GB", "sge": "-l tmpfs=4G"},
    "file systems": {"pbspro": "-l filesystems=home", "cobalt": "-n 1 --attrs filesystems=home"},
    "priority": {"slurm": "--nice=5", "pbspro": "-p 5", "torque": "-p 5", "lsf": "-sp 5", "sge": "-p -5",
        "htcondor": "priority = 5", "flux": "--urgency=10"},
    "hold": {"slurm": "-H", "pbspro": "-h", "torque": "-h", "lsf": "-H", "sge": "-h", "cobalt": "-h",
        "htcondor": "hold = True", "flux": "--urgency=hold"},
    "stdin": {"slurm": "-i f", "lsf": "-i f", "sge": "-i f", "cobalt": "-i f", "htcondor": "input = f",
        "flux": "--input=f"},
    "stdout": {"slurm": "-o f", "pbspro": "-o f", "torque": "-o f", "lsf": "-o f", "sge": "-o f", "cobalt": "-o f",
        "htcondor": "output = f", "flux": "--output=f"},
    "stderr": {"slurm": "-e f", "pbspro": "-e f", "torque": "-e f", "lsf": "-e f", "sge": "-e f", "cobalt": "-e f",
        "htcondor": "error = f", "flux": "--error=f"},
    "job id in a file name": {"slurm": "-o a.%j", "pbspro": "-o a.^jobid^", "torque": "-o a.$PBS_JOBID",
        "lsf": "-o a.%J", "sge": "-o a.$JOB_ID", "cobalt": "-o a.$jobid", "htcondor": "output = a.$(Cluster)",
        "flux": "--output=a.{{id}}"},
    "id of the array in a file name": {"slurm": "-a 1-2 -o a.%A", "pbspro": "-J 1-2 -o a.^array_id^"},
    "index in a file name": {"slurm": "-a 1-2 -o a.%a", "pbspro": "-J 1-2 -o a.^array_index^",
        "torque": "-t 1-2 -o a", "lsf": '-J "a[1-2]" -o a.%I', "sge": "-t 1-2 -o a.$TASK_ID",
        "htcondor": "output = a.$(Process)"},
    "name in a file name": {"slurm": "-o %x.o", "sge": "-o $JOB_NAME.o",
        "flux": "--output={{name}}.o"},
    "user in a file name": {"slurm": "-o %u.o", "sge": "-o $USER.o"},
    "host in a file name": {"slurm": "-o %N.o", "sge": "-o $HOSTNAME.o", "flux": "--output={{node.name}}.o"},
    "ranks in a file name": {"slurm": "-o %n.%t", "flux": "--output={{node.id}}.{{taskid}}"},
    "step in a file name": {"slurm": "-o %s.o"},
    "zeros before numbers in a file name": {"slurm": "-o %4j.o"},
    "percent in a file name": {"slurm": "-o 100%%.o"},
    "folder for output": {"pbspro": "-o d/", "torque": "-o d/", "lsf": "-o d/", "sge": "-o d/"},
    "host of output": {"pbspro": "-o h:f", "torque": "-o h:f", "sge": "-o h:f"},
    "merge": {"slurm": "-o f", "pbspro": "-j oe", "torque": "-j oe", "lsf": "-o f", "sge": "-j y",
        "cobalt": "-o f -e f", "htcondor": "output = f\nerror = f", "flux": "--output=f"},
    "append": {"slurm": "-o f --open-mode=append", "lsf": "-o f", "flux": "--output=f --setopt=output.mode=append"},
    "append, several files": {"htcondor": "append_files = f"},
    "keep": {"pbspro": "-k oe", "torque": "-k oe"},
    "staging": {"pbspro": "-W stagein=a@h:b", "torque": "-W stagein=a@h:b", "lsf": '-f "a > b"',
        "htcondor": "transfer_input_files = a"},
    "staging, afterwards": {"pbspro": "-W stageout=a@h:b", "torque": "-W stageout=a@h:b",
        "htcondor": "transfer_output_files = a\nshould_transfer_files = YES"},
    "remove files of output": {"pbspro": "-R eo"},
    "export all": {"slurm": "--export=ALL", "pbspro": "-V", "torque": "-V", "lsf": "-env all", "sge": "-V",
        "htcondor": "getenv = True", "flux": '--env="*"'},
    "export none": {"slurm": "--export=NONE", "lsf": "-env none", "htcondor": "getenv = False", "flux": '--env="-*"'},
    "set a variable": {"slurm": "--export=ALL,A=1", "pbspro": "-v A=1", "torque": "-v A=1", "lsf": '-env "all, A=1"',
        "sge": "-v A=1", "cobalt": "--env A=1", "htcondor": 'environment = "A=1"', "flux": "--env=A=1"},
    "variable with a comma": {"slurm": """--export="A='x,y'\"""", "pbspro": """-v "A='x,y'\"""",
        "torque": """-v "A='x,y'\"""", "lsf": """-env "A='x,y'\"""", "cobalt": "--env A=x,y",
        "htcondor": 'environment = "A=x,y"', "flux": "--env=A=x,y"},
    "shell": {"pbspro": "-S /bin/bash", "torque": "-S /bin/bash", "sge": "-S /bin/bash"},
    "login shell": {"slurm": "--get-user-env", "lsf": "-L /bin/sh"},
    "start directory": {"slurm": "-D /x", "torque": "-d /x", "lsf": "-cwd /x", "sge": "-wd /x", "cobalt": "--cwd /x",
        "htcondor": "initialdir = /x", "flux": "--cwd=/x"},
    "root, directory of the submission": {"torque": "-D /x -w /y"},
    "sandbox": {"pbspro": "-W sandbox=PRIVATE"},
    "requeue": {"slurm": "--requeue", "pbspro": "-r y", "torque": "-r y", "lsf": "-r", "sge": "-r y",
        "htcondor": "max_retries = 3"},
    "checkpoint": {"pbspro": "-c s", "torque": "-c s", "lsf": "-k d", "sge": "-ckpt x -c s",
        "htcondor": "+WantCheckpoint = True"},
    "warning signal": {"slurm": "--signal=USR1@60", "lsf": "-wa USR1 -wt 1", "sge": "-notify",
        "flux": "--signal=USR1@60s", "htcondor": "kill_sig = USR1", "torque": "-K 30"},
    "wait for the end": {"slurm": "-W", "pbspro": "-W block=true", "torque": "-W block=true", "lsf": "-K",
        "sge": "-sync y"},
    "interactive": {"pbspro": "-I", "torque": "-I", "lsf": "-I", "cobalt": "-I"},
    "limits": {"slurm": "--propagate", "lsf": "-C 1", "sge": "-l h_fsize=1G", "flux": "--rlimit=core",
        "pbspro": "-l nice=3", "torque": "-l nice=3"},
    "umask": {"pbspro": "-W umask=022", "torque": "-W umask=022", "cobalt": "-u 022"},
    "array": {"slurm": "-a 1-10:2%4", "pbspro": "-J 1-10:2%4", "torque": "-t 1-10%4", "lsf": '-J "a[1-10:2]%4"',
        "sge": "-t 1-10:2 -tc 4", "htcondor": "max_materialize = 4"},
    "array, several ranges": {"slurm": "-a 1,3-5", "torque": "-t 1,3-5", "lsf": '-J "a[1,3-5]"'},
    "mail at begin": {"slurm": "--mail-type=BEGIN", "pbspro": "-m b", "torque": "-m b", "lsf": "-B", "sge": "-m b",
        "cobalt": "-M a@b"},
    "mail at end": {"slurm": "--mail-type=END", "pbspro": "-m e", "torque": "-m e", "lsf": "-N", "sge": "-m e",
        "htcondor": "notification = Complete"},
    "mail at failure": {"slurm": "--mail-type=FAIL", "pbspro": "-m a", "torque": "-m a", "lsf": "-Ne", "sge": "-m a",
        "htcondor": "notification = Error"},
    "mail at other events": {"slurm": "--mail-type=REQUEUE,TIME_LIMIT_90,ARRAY_TASKS", "pbspro": "-J 1-2 -m aj",
        "sge": "-m s"},
    "mail at all": {"slurm": "--mail-type=ALL", "pbspro": "-m abe", "torque": "-m abe", "lsf": "-B -N",
        "sge": "-m beas", "htcondor": "notification = Always"},
    "mail at none": {"slurm": "--mail-type=NONE", "pbspro": "-m n", "torque": "-m n", "sge": "-m n",
        "htcondor": "notification = Never"},
    "mail to": {"slurm": "--mail-user=a@b", "pbspro": "-M a@b", "torque": "-M a@b", "lsf": "-u a@b", "sge": "-M a@b",
        "htcondor": "notify_user = a@b"},
    "after success": {"slurm": "-d afterok:1", "pbspro": "-W depend=afterok:1", "torque": "-W depend=afterok:1",
        "lsf": '-w "done(1)"', "cobalt": "--dependencies 1", "flux": "--dependency=afterok:1"},
    "after failure": {"slurm": "-d afternotok:1", "pbspro": "-W depend=afternotok:1",
        "torque": "-W depend=afternotok:1", "lsf": '-w "exit(1)"', "flux": "--dependency=afternotok:1"},
    "after any end": {"slurm": "-d afterany:1", "pbspro": "-W depend=afterany:1", "torque": "-W depend=afterany:1",
        "lsf": '-w "ended(1)"', "sge": "-hold_jid 1", "flux": "--dependency=afterany:1"},
    "after an exit code": {"lsf": '-w "exit(1,3)"'},
    "after the start": {"slurm": "-d after:1", "pbspro": "-W depend=after:1", "torque": "-W depend=after:1",
        "lsf": '-w "started(1)"', "flux": "--dependency=after:1"},
    "element by element": {"slurm": "-d aftercorr:1", "lsf": '-w "done(1[*])"', "sge": "-hold_jid_ad 1"},
    "after an array": {"pbspro": "-W depend=afterok:1[]", "torque": "-W depend=afterokarray:1[]"},
    "after several": {"slurm": "-d afterok:1:2,afterany:3", "pbspro": "-W depend=afterok:1:2,afterany:3",
        "torque": "-W depend=afterok:1:2,afterany:3", "lsf": '-w "done(1)&&ended(2)"', "sge": "-hold_jid 1,2",
        "cobalt": "--dependencies 1:2", "flux": "--dependency=afterok:1 --dependency=afterany:2"},
    "not after": {"lsf": '-w "!done(1)"'},
    "before": {"pbspro": "-W depend=beforeok:1", "torque": "-W depend=on:1"},
    "after a name": {"lsf": '-w "done(prep)"', "sge": "-hold_jid prep"},
    "one of several": {"slurm": '-d "afterok:1?afterok:2"', "lsf": '-w "done(1)||done(2)"'},
    "singleton": {"slurm": "-d singleton", "flux": "--dependency=singleton"},
    "wall limit, soft or by the site": {"sge": "-l s_rt=300", "htcondor": "MY.MaxRuntime = 300"},
    "memory of a slot, by another name": {"sge": "-l mem_free=4G"},
}

#: Attributes of which a dialect keeps its option as it is, for itself alone -> why.
GAPS: Final = {
    "project (second)": "a job has one Project; the second one is kept for its own dialect",
    "qos": "service levels of LSF and the resource that some sites of PBS Pro have are names of the site",
    "comment": "attributes that a user makes up",
    "user": "only administrators may name another user there",
    "wall limit, soft or by the site": "a warning ahead of the limit, or an attribute of the site",
    "shortest useful": "an estimate is no limit",
    "cpu time of a process": "a limit of each process, where ResourceLimit is one of the job",
    "threads": "threads and the binding of slots have no property",
    "hint": "a wish for the binding of tasks",
    "contiguous": "how nodes are connected is the site's",
    "all memory": "no amount",
    "virtual memory": "a limit beside the memory that is asked for; there is one Memory",
    "gpus of the site": "a resource of the site's; whether it counts slots or jobs the site knows",
    "type of gpu": "a condition on the properties of a GPU, which only HTCondor evaluates",
    "licences": "which names are licences the site knows",
    "other counted resource": "which names are counted the site knows",
    "scratch disk": "a resource of the site's",
    "file systems": "a resource of the site's",
    "keep": "whether files stay where the job ran",
    "staging": "not built: files that are copied before and after the job",
    "login shell": "it asks for the variables of a login, not for a shell",
    "sandbox": "a folder that PBS Pro makes",
    "checkpoint": "the names and words of the site's checkpointing",
    "warning signal": "fixed signals, or the one that ends the job",
    "limits": "how limits of the submitter go along, and sizes without a unit, which is the site's",
    "element by element": "Dependency has no elements; other dialects than Slurm keep it as it is",
    "not after": "Dependency has no negation",
    "exclusive node, by the site": "an attribute of the site",
    "append, several files": "the names are those of files that are copied back",
    "staging, afterwards": "not built: files that are copied before and after the job",
    "remove files of output": "what becomes of the files when they are there",
    "root, directory of the submission": "a root of its own, and a value of PBS_O_WORKDIR",
    "one of several": "Dependency is a conjunction",
}

#: Attributes that are carried, and of which the dialect keeps a word for itself as well.
SPELLED: Final = (
    "nodes", "tasks", "cpus in all", "memory of a process", "memory of a slot, by another name", "exclusive node")

#: Attributes that a dialect says without an option, or not at all -> dialect -> how.
WITHOUT: Final = {
    "queue": {"htcondor": "requirements, or an attribute of the site (+queue)"},
    "cluster": {"sge": "$SGE_CELL of the submit command", "htcondor": "-pool of the submit command"},
    "application": {"sge": "-l name: a resource of the site's"},
    "nodes": {"sge": "the parallel environment's rule; a site profile names them"},
    "tasks per node": {"sge": "the parallel environment's rule", "flux": "tasks by nodes"},
    "one host": {"sge": "a parallel environment with $pe_slots; a site profile names them", "htcondor": "always"},
    "cpus per task": {"torque": "ppn by the tasks of the launcher", "sge": "slots of an environment on one host"},
    "threads": {"cobalt": "-j of the launcher"},
    "contiguous": {"cobalt": "--attrs location=, which is Node"},
    "gpus per node": {"sge": "-l gpu=, a resource of the site's", "cobalt": "the queue or --attrs"},
    "exclusive node": {"cobalt": "always"},
    "file systems": {"slurm": "-L, a licence of the site's"},
    "priority": {"cobalt": "--score is no option of its qsub; it is refused"},
    "shell": {"slurm": "the first line of the script", "lsf": "the first line", "cobalt": "the first line",
              "flux": "the first line", "htcondor": "the executable"},
    "login shell": {"sge": "login_shells of the site"},
    "start directory": {"pbspro": "cd in the script"},
    "staging": {"sge": "not built: -dtf and prologues of the site"},
    "requeue": {"cobalt": "none", "flux": "none"},
    "warning signal": {"pbspro": "kill_delay of the queue", "cobalt": "none"},
    "wait for the end": {"cobalt": "cqwait", "htcondor": "condor_wait", "flux": "flux job wait; --wait is no option of "
                         "flux batch and is refused"},
    "interactive": {"slurm": "salloc, srun --pty", "sge": "qlogin, qrsh", "htcondor": "condor_submit -i",
                    "flux": "flux alloc"},
    "umask": {"slurm": "umask in the script", "lsf": "umask in the script", "sge": "umask in the script"},
    "after an array": {"slurm": "the id of the array is that of a job", "lsf": "numdone(1, > n), which is kept",
                       "sge": "the id of the array is that of a job"},
    "project (second)": {"torque": "none: its -P names another user"},
    "comment": {"pbspro": "none that a user can set"},
    "cpus in all": {"slurm": "tasks by processors of a task", "lsf": "-n by affinity", "cobalt": "nodes by the site's",
                    "htcondor": "request_cpus", "flux": "slots by their cores"},
    "type of gpu": {"flux": "--requires, which is Feature"},
    "append": {"pbspro": "none: files are written anew", "torque": "none: files are written anew", "sge": "always",
               "cobalt": "not known", "htcondor": "append_files, for files that are copied back"},
    "mail at end": {"cobalt": "-M, which is both begin and end"},
    "mail to": {"cobalt": "-M, the address of NotificationList"},
    "after success": {"sge": "none: -hold_jid waits for any end"},
    "after failure": {"sge": "none", "cobalt": "none"},
    "after any end": {"cobalt": "none"},
    "after a name": {"slurm": "singleton", "flux": "singleton"},
    "variable with a comma": {"sge": "none: -v parts at commas whatever is quoted (told)"},
}


def examples() -> dict[str, dict[str, str]]:
    """Attribute -> dialect -> options: the table above, and what dialects bring themselves (``Dialect.examples``)."""
    return _with(EXAMPLES, {dialect.name: dialect.examples for dialect in _dialects()})


def without() -> dict[str, dict[str, str]]:
    """Attribute -> dialect -> how it is said without an option (``WITHOUT``, ``Dialect.without``)."""
    return _with(WITHOUT, {dialect.name: dialect.without for dialect in _dialects()})


def gaps() -> dict[str, str]:
    """Attribute -> why the option for it is kept for its own dialect (``GAPS``, ``Dialect.gaps``)."""
    return GAPS | {attribute: why for dialect in _dialects() for attribute, why in dialect.gaps.items()}


def _dialects() -> tuple[Dialect, ...]:
    """All built-in dialects, and those of others that are in use."""
    for name in SCRIPT_FORMATS:
        dialect_of(name)
    return dialects()


def _with(table: Mapping[str, Mapping[str, str]], own: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    merged = {attribute: dict(by) for attribute, by in table.items()}
    for dialect, texts in own.items():
        for attribute, text in texts.items():
            merged.setdefault(attribute, {})[dialect] = text
    return merged


def script(dialect: str, options: str) -> str:
    """A script with options of a dialect and nothing else."""
    if dialect == "htcondor":
        return f"executable = a\n{options}\nqueue {2 if 'max_materialize' in options else 1}\n"
    dialect_ = dialect_of(dialect)
    assert dialect_ is not None
    return f"#!/bin/sh\n{dialect_.prefix} {options}\n./a\n"
