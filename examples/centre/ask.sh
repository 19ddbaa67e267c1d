#!/bin/sh
#SBATCH --account=chem --ntasks=8 --cpus-per-task=2 --time=2:00:00
./a
