#!/bin/sh
# Stands for systemctl and loginctl on the PATH of a test: records each call in $STUB_DIR/calls, starts and ends the unit's
# real program, and remembers in $STUB_DIR what the real ones would. A file in $STUB_DIR/fail/ named like the verb makes
# that verb fail with the file's text.
set -u
printf '%s\n' "${0##*/} $*" >>"$STUB_DIR/calls"
verb='' now=''
for word; do
  case $word in
    --now) now=yes ;;
    -*) ;;
    *) verb=${verb:-$word} ;;
  esac
done
if [ -f "$STUB_DIR/fail/$verb" ]; then
  cat "$STUB_DIR/fail/$verb" >&2
  exit 1
fi

units=$STUB_DIR/units unit=svc-device@agents.service target=multi-user
case " $* " in
  *' --user '*) units=$HOME/.config/systemd/user unit=svc-device.service target=default ;;
esac
wanted=$units/$target.target.wants/$unit
# The unit as it was at the last daemon-reload.
loaded=$STUB_DIR/loaded.service
pid=$(cat "$STUB_DIR/pid" 2>/dev/null)

is_alive() { [ -n "$pid" ] && grep -qs '^State:.[^Z]' "/proc/$pid/status"; }

show() {
  status=$(cat "$STUB_DIR/exit" 2>/dev/null || echo 0)
  active=inactive main=0 load=not-found file='' result=success
  # An end other than 78 would be followed by a new start, which is for the test to do.
  if is_alive; then active=active main=$pid; elif [ "$status" = 78 ]; then active=failed result=exit-code; fi
  if [ -f "$loaded" ]; then load=loaded; fi
  if [ -e "$wanted" ]; then file=enabled; elif [ -f "$units/$unit" ]; then file=disabled; fi
  printf '%s\n' "LoadState=$load" "ActiveState=$active" "UnitFileState=$file" "MainPID=$main" "Result=$result" "ExecMainStatus=$status"
}

start() {
  if is_alive; then return; fi
  [ -f "$loaded" ] || { echo "Failed to start $unit: Unit $unit not found." >&2; exit 5; }
  rm -f "$STUB_DIR/exit" "$STUB_DIR/pid"
  {
    sed -n 's/^Environment=/export /p' "$loaded"
    echo "$(sed -n 's/^ExecStart=//p' "$loaded") & echo \$! >'$STUB_DIR/pid.new'; mv '$STUB_DIR/pid.new' '$STUB_DIR/pid'"
    # Its status outlives it, as in the service manager.
    echo "wait \$!; echo \$? >'$STUB_DIR/exit'"
  } >"$STUB_DIR/script"
  setsid env -i "HOME=$HOME" SHELL=/bin/sh "NODE_COMPILE_CACHE=$STUB_COMPILED" /bin/sh "$STUB_DIR/script" >>"$STUB_DIR/journal" 2>&1 &
  until [ -f "$STUB_DIR/pid" ]; do sleep 0.01; done
}

stop() {
  is_alive || return 0
  kill "$pid"
  until [ -f "$STUB_DIR/exit" ]; do sleep 0.01; done
}

case $verb in
  show-environment) echo "HOME=$HOME" ;;
  show) show ;;
  daemon-reload) if [ -f "$units/$unit" ]; then cp "$units/$unit" "$loaded"; else rm -f "$loaded"; fi ;;
  enable) mkdir -p "${wanted%/*}" && ln -sf "$units/$unit" "$wanted" ;;
  disable)
    [ -f "$units/$unit" ] || { echo "Failed to disable unit: Unit file $unit does not exist." >&2; exit 1; }
    rm -f "$wanted"
    if [ -n "$now" ]; then stop; fi
    ;;
  start) start ;;
  stop) stop ;;
  reset-failed) rm -f "$STUB_DIR/exit" ;;
  show-user) if [ -f "$STUB_DIR/linger" ]; then echo yes; else echo no; fi ;;
  enable-linger) : >"$STUB_DIR/linger" ;;
  disable-linger) rm -f "$STUB_DIR/linger" ;;
  *) echo "Unknown command verb $verb." >&2; exit 1 ;;
esac
