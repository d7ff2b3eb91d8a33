# Sourced by the scripts that run several checks: each runs even when one before it failed, and the report at the end
# shows which failed and how long each took.
section_names=() section_results=() section_seconds=()

# section NAME COMMAND...
section() {
  local name=$1 start=$SECONDS result=passed
  shift
  printf '\n=== %s\n' "$name"
  "$@" </dev/null || result=FAILED
  section_names+=("$name") section_results+=("$result") section_seconds+=($((SECONDS - start)))
  printf '=== %s: %s after %d s\n' "$name" "$result" "${section_seconds[-1]}"
}

# Prints the table; its status is 1 when a section failed.
report_sections() {
  local i failed=0 total=${#section_names[@]}
  echo
  for i in "${!section_names[@]}"; do
    printf '%-45s %-7s %5d s\n' "${section_names[i]}" "${section_results[i]}" "${section_seconds[i]}"
    [ "${section_results[i]}" = passed ] || failed=$((failed + 1))
  done
  printf '%d%% of sections passed, %d failed out of %d\n' $(((total - failed) * 100 / total)) "$failed" "$total"
  [ "$failed" -eq 0 ]
}

# run_ctest BUILD_DIR JOBS [OPTION...]: ctest without its lines about tests that pass.
run_ctest() (
  set -o pipefail
  ctest --test-dir "$1" --parallel "$2" --output-on-failure --no-tests=error --timeout 600 "${@:3}" |
    grep -vE '^ *Start +[0-9]+: |^ *[0-9]+/[0-9]+ Test +#[0-9]+: .* Passed '
)
