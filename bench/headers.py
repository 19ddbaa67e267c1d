"""Scripts with a header of 20 directives (Cobalt has no 20 that mean something), one a dialect, as a person of such a
site writes them; ``{body}`` is where the commands go."""

from __future__ import annotations

from typing import Final

__all__ = ["BODIES", "HEADERS"]

HEADERS: Final = {
    "slurm": b"""#!/bin/bash
#SBATCH --job-name=cfd
#SBATCH --account=phys
#SBATCH --partition=batch
#SBATCH --qos=normal
#SBATCH --time=01:30:00
#SBATCH --nodes=2
#SBATCH --ntasks=16
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=2
#SBATCH --mem=4G
#SBATCH --constraint=ib
#SBATCH --array=1-10
#SBATCH --dependency=afterok:11
#SBATCH --begin=2026-01-01T00:00:00
#SBATCH --requeue
#SBATCH --chdir=/scratch/x
#SBATCH --output=cfd.o%j
#SBATCH --error=cfd.e%j
#SBATCH --mail-type=FAIL,END
#SBATCH --mail-user=me@example.org

module load gcc
{body}""",
    "pbspro": b"""#!/bin/bash
#PBS -N cfd
#PBS -A phys
#PBS -P climate
#PBS -q batch
#PBS -l walltime=01:30:00
#PBS -l select=2:ncpus=16:mpiprocs=8:mem=4gb:ib=true
#PBS -l place=scatter:excl
#PBS -l software=fluent
#PBS -l cput=20:00:00
#PBS -J 1-10
#PBS -W depend=afterok:11
#PBS -W group_list=users
#PBS -a 202601010000
#PBS -r y
#PBS -o cfd.out
#PBS -e cfd.err
#PBS -v A=1,B=2
#PBS -S /bin/bash
#PBS -m ae
#PBS -M me@example.org

module load gcc
{body}""",
    "torque": b"""#!/bin/bash
#PBS -N cfd
#PBS -A phys
#PBS -q batch
#PBS -l walltime=01:30:00
#PBS -l nodes=2:ppn=8:ib
#PBS -l pmem=2gb
#PBS -l file=20gb
#PBS -l qos=high
#PBS -l cput=20:00:00
#PBS -t 1-10%4
#PBS -W depend=afterok:11
#PBS -W group_list=users
#PBS -a 202601010000
#PBS -r y
#PBS -d /scratch/x
#PBS -o cfd.o$PBS_JOBID
#PBS -e cfd.e$PBS_JOBID
#PBS -v A=1,B=2
#PBS -m ae
#PBS -M me@example.org

module load gcc
{body}""",
    "lsf": b"""#!/bin/bash
#BSUB -J "cfd[1-10]%4"
#BSUB -P phys
#BSUB -G users
#BSUB -q batch
#BSUB -W 01:30
#BSUB -n 16
#BSUB -R "select[ib] span[ptile=8]"
#BSUB -R "rusage[mem=4GB,tmp=20GB]"
#BSUB -R "affinity[core(2)*1]"
#BSUB -gpu "num=2:mode=exclusive_process"
#BSUB -x
#BSUB -w "done(11) && ended(12)"
#BSUB -b 2026:01:01:00:00
#BSUB -r
#BSUB -cwd /scratch/x
#BSUB -oo cfd.o%J
#BSUB -eo cfd.e%J
#BSUB -N
#BSUB -B
#BSUB -u me@example.org

module load gcc
{body}""",
    "sge": b"""#!/bin/bash
#$ -N cfd
#$ -P phys
#$ -A climate
#$ -q batch.q
#$ -l h_rt=01:30:00
#$ -l h_vmem=4G
#$ -l ib,gpu=2
#$ -pe mpi 16
#$ -R y
#$ -t 1-10
#$ -tc 4
#$ -hold_jid 11
#$ -a 202601010000
#$ -r y
#$ -cwd
#$ -S /bin/bash
#$ -v A=1,B=2
#$ -o cfd.o$JOB_ID
#$ -e cfd.e$JOB_ID
#$ -m ea -M me@example.org

module load gcc
{body}""",
    "cobalt": b"""#!/bin/bash
#COBALT --jobname cfd
#COBALT -A phys
#COBALT -q batch
#COBALT -t 01:30:00
#COBALT -n 2
#COBALT --proccount 16
#COBALT --attrs mcdram=cache:numa=quad
#COBALT --dependencies 11
#COBALT --env A=1:B=2
#COBALT --cwd /scratch/x
#COBALT -o cfd.o$jobid
#COBALT -e cfd.e$jobid
#COBALT -M me@example.org

module load gcc
{body}""",
    "htcondor": b"""universe = vanilla
batch_name = cfd
executable = cfd.sh
arguments = "a 'b c' 1"
environment = "A=1 B=2"
getenv = True
initialdir = /scratch/x
input = cfd.in
output = cfd.o$(Cluster)
error = cfd.e$(Cluster)
log = cfd.log
request_cpus = 16
request_memory = 4 GB
request_disk = 20 GB
request_gpus = 2
requirements = (OpSys == "LINUX") && (Arch == "X86_64")
accounting_group = phys
allowed_execute_duration = 5400
notification = Complete
notify_user = me@example.org
queue 10
""",
    "flux": b"""#!/bin/bash
#FLUX: --job-name=cfd
#FLUX: --bank=phys
#FLUX: --queue=batch
#FLUX: --time-limit=90m
#FLUX: --nodes=2
#FLUX: --nslots=16
#FLUX: --cores-per-slot=2
#FLUX: --gpus-per-slot=1
#FLUX: --exclusive
#FLUX: --requires=ib
#FLUX: --dependency=afterok:11
#FLUX: --begin-time="2026-01-01 00:00:00"
#FLUX: --urgency=12
#FLUX: --signal=USR1@60s
#FLUX: --setattr=project=climate
#FLUX: --cwd=/scratch/x
#FLUX: --env=A=1
#FLUX: --env=B=2
#FLUX: --output=cfd.o{{id}}
#FLUX: --error=cfd.e{{id}}

module load gcc
{body}""",
}

_LINES: Final = b"cd %s\necho %s\n%s ./a.out\n"
#: What runs in a job, beside ``mpirun ./a.out``: lines whose variables and command are the manager's.
BODIES: Final = {
    "slurm": _LINES % (b"$SLURM_SUBMIT_DIR", b"$SLURM_JOB_ID", b"srun -n 4"),
    "pbspro": _LINES % (b"$PBS_O_WORKDIR", b"$PBS_JOBID", b"mpirun -machinefile $PBS_NODEFILE"),
    "torque": _LINES % (b"$PBS_O_WORKDIR", b"$PBS_JOBID", b"mpirun -machinefile $PBS_NODEFILE"),
    "lsf": _LINES % (b"$LS_SUBCWD", b"$LSB_JOBID", b"mpirun -np $LSB_DJOB_NUMPROC"),
    "sge": _LINES % (b"$SGE_O_WORKDIR", b"$JOB_ID", b"mpirun -np $NSLOTS"),
    "cobalt": _LINES % (b"/scratch/x", b"$COBALT_JOBID", b"aprun -n 16 -N 8"),
    "flux": _LINES % (b"/scratch/x", b"$FLUX_JOB_ID", b"flux run -n 4"),
}
