#!/bin/sh
#SBATCH --job-name=ocean
#SBATCH --partition=batch
#SBATCH --nodes=2 --ntasks=16 --time=30
srun ./ocean
