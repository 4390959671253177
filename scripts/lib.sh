# Sourced by the scripts beside it: named, timed steps and the pinned tools.
# shellcheck shell=bash

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# A run started from a hook carries git's variables, which would point the git
# and go commands elsewhere.
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE

step_times=()

# step NAME COMMAND... runs the command, and ends the script when it fails.
step() {
	local name=$1 begun=$SECONDS status=0
	shift
	printf '== %s\n' "$name"
	# A subshell, so that the step stops at its first failing command.
	set +e
	(
		set -euo pipefail
		"$@"
	)
	status=$?
	set -e
	step_times+=("$(printf '%6d s  %s' $((SECONDS - begun)) "$name")")
	if ((status != 0)); then
		print_times
		printf '%s: FAILED at step "%s" (exit status %d)\n' "$(basename "$0")" "$name" "$status" >&2
		on_failure
		exit 1
	fi
}

# on_failure is called before a failing step ends the script.
on_failure() { :; }

print_times() {
	printf '== time\n'
	printf '%s\n' "${step_times[@]}"
}

# tool NAME ARGS... runs a tool pinned in tools/go.mod; the go command builds it
# once and keeps it in its cache.
tool() { go tool -modfile=tools/go.mod "$@"; }
