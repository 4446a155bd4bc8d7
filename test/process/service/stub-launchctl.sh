#!/bin/sh
# Stands for launchctl on the PATH of a test, as stub-systemctl.sh does for systemctl. `bootout` answers before the job has
# ended, as the real one does.
set -u
printf '%s\n' "launchctl $*" >>"$STUB_DIR/calls"
verb=$1
target=${2-}
fail() { echo "$2" >&2; exit "$1"; }
if [ -f "$STUB_DIR/fail/$verb" ]; then
  cat "$STUB_DIR/fail/$verb" >&2
  exit 5
fi

loaded=$STUB_DIR/loaded.plist
pid=$(cat "$STUB_DIR/pid" 2>/dev/null)

is_alive() { [ -n "$pid" ] && grep -qs '^State:.[^Z]' "/proc/$pid/status"; }

if [ -e "$STUB_DIR/leaving" ] && ! is_alive; then rm -f "$loaded" "$STUB_DIR/leaving" "$STUB_DIR/pid"; fi

start() {
  if is_alive; then return; fi
  node "$(dirname "$(readlink -f "$0")")/stub-launchd-job.mjs" "$loaded" >"$STUB_DIR/pid"
}

case $verb in
  print)
    case $target in
      */dev.svc.device) ;;
      *) exit 0 ;;
    esac
    [ -e "$loaded" ] || fail 113 'Could not find service "dev.svc.device" in domain for user gui: 501'
    printf '%s = {\n\tactive count = 1\n' "$target"
    if is_alive; then printf '\tstate = running\n\tpid = %s\n}\n' "$pid"; else printf '\tstate = not running\n\tlast exit code = 0\n}\n'; fi
    ;;
  print-disabled)
    echo 'disabled services = {'
    if [ -e "$STUB_DIR/disabled" ]; then printf '\t"dev.svc.device" => disabled\n'; fi
    echo '}'
    ;;
  enable) rm -f "$STUB_DIR/disabled" ;;
  bootstrap)
    if [ -e "$loaded" ] || [ -e "$STUB_DIR/disabled" ]; then fail 5 'Bootstrap failed: 5: Input/output error'; fi
    cp "$3" "$loaded"
    start
    ;;
  kickstart) start ;;
  bootout)
    [ -e "$loaded" ] || fail 3 'Boot-out failed: 3: No such process'
    : >"$STUB_DIR/leaving"
    if is_alive; then kill "$pid"; fi
    fail 36 'Boot-out failed: 36: Operation now in progress'
    ;;
  *) fail 64 "Unknown command verb $verb." ;;
esac
