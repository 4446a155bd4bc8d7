import { join } from 'node:path'

/** Says what a run does to get rid of svc, as shell commands. They name only what belongs to the test. */
export interface Targets {
  root: string
  stateDir: string
  dataDir: string
  pids: readonly number[]
}

export function attacksOn({ root, stateDir, dataDir, pids }: Targets): string[] {
  const writeToSockets = `
    const { connect } = require('node:net'); const { globSync, readFileSync } = require('node:fs')
    const abstract = readFileSync('/proc/net/unix', 'latin1').match(/@\\S+$/gm) ?? []
    const found = [...globSync('${root}/**/*.sock'), ...globSync('/tmp/**/*.sock'), '${stateDir}/daemon.sock', ...abstract.map((name) => '\\0' + name.slice(1))]
    for (const path of found) { const socket = connect(path); socket.on('error', () => {}); for (const text of ['{"op":"stop"}', '{"op":"set_isolation","isolation":"off"}', '{"type":"discard"}', 'x'.repeat(100000)]) socket.write(text + '\\n') }
    setTimeout(() => process.exit(0), 300)`
  return [
    'pkill -9 -f svc',
    'pkill -STOP -f device-manager',
    'kill -9 -1',
    'kill -STOP -1',
    'kill -TERM 0',
    'killall -9 node; killall -9 cat sh unshare bwrap',
    `kill -9 ${pids.join(' ')}`,
    'i=1; while [ $i -lt 600 ]; do kill -9 $i 2>/dev/null; i=$((i+1)); done',
    'for process in /proc/[0-9]*; do kill -9 ${process#/proc/}; done',
    // The bomb is bounded by itself, since nothing bounds the processes of root.
    'i=1; while [ $i -lt 120 ]; do (sleep 20; :) & i=$((i+1)); done',
    'i=1; while [ $i -lt 60 ]; do setsid env -i sh -c "trap \\"\\" HUP TERM INT; sleep 30" </dev/null >/dev/null 2>&1 & i=$((i+1)); done',
    `rm -rf '${stateDir}' '${dataDir}'; rm -rf '${stateDir}'/* '${stateDir}'/.[a-z]*`,
    `mv '${stateDir}' '${stateDir}-away'; rmdir '${stateDir}'; ln -sfn /nowhere '${stateDir}'`,
    `mv '${root}' '${root}-away'; mv '${join(stateDir, '..')}' /tmp/away`,
    `chmod -R 000 '${stateDir}' '${dataDir}'; chown -R 12345 '${stateDir}'`,
    `find '${stateDir}' '${dataDir}' -type f -exec sh -c ': >"$1"' sh {} \\;`,
    `for name in spool.db journal.db identity.json device-token daemon.json settings.json; do echo junk >'${stateDir}/'$name; done`,
    `umount -l '${stateDir}'; umount -l '${dataDir}'; mount -t tmpfs none '${root}'`,
    `unshare --user --map-root-user --mount --keep-caps sh -c "umount -l '${stateDir}'; rm -rf '${stateDir}'/*; umount -a -l"`,
    'unshare --user --map-root-user --pid --fork --mount-proc kill -9 -1',
    'nsenter --target 1 --all kill -9 -1',
    'for terminal in /dev/pts/[0-9]*; do echo written by another run >$terminal; done',
    'for file in /proc/[0-9]*/fd/*; do echo junk >$file; done 2>/dev/null',
    'echo c >/proc/sysrq-trigger; echo 1 >/proc/sys/kernel/panic; echo "|/bin/false" >/proc/sys/kernel/core_pattern',
    `for group in $(grep ' - cgroup' /proc/self/mountinfo | cut -d' ' -f5); do find "$group" -name cgroup.kill -o -name cgroup.freeze | while read -r file; do echo 1 >"$file"; done; done 2>/dev/null`,
    'unshare --user --map-root-user --mount --cgroup sh -c "mount -t cgroup2 none /mnt && echo 1 >/mnt/cgroup.kill"',
    'dd if=/dev/zero of=fill bs=1M; sleep 1; rm -f fill',
    'yes flood | head -c 3000000',
    `'${process.execPath}' -e '${writeToSockets.replaceAll("'", `'\\''`)}'`,
  ]
}
