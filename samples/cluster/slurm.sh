#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds shards on Slurm with three jobs: bash slurm.sh SOURCE OUT PARTS [BUILD OPTIONS]
#
# The least that does it, to adapt by hand. `precache cluster slurm` prints a script that also repeats a part after an
# exit status of 3, and stops cleanly at the time limit.
set -euo pipefail
source=$1 out=$2 parts=$3
build=(precache build "$source" "$out" "${@:4}" --jobs "${CPUS:-8}")

# With exec, signals of Slurm reach precache and not a shell.
submit() { sbatch --parsable --requeue --cpus-per-task="${CPUS:-8}" --kill-on-invalid-dep=yes "$@"; }
step() { printf '#!/bin/bash\n%s\nexec "${build[@]}" %s\n' "$(declare -p build)" "$1"; }

prepare=$(step --prepare | submit)
array=$(step "--part \$SLURM_ARRAY_TASK_ID/$parts" | submit --array="0-$((parts - 1))" --dependency="afterok:$prepare")
finish=$(step --finish | submit --dependency="afterok:$array")
echo "submitted $prepare, $array and $finish"
