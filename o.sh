#!/bin/sh
#SBATCH -N1 -n4 --mem=1G
true
