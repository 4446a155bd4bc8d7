import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, inject, onTestFinished, test } from 'vitest'
import { killCgroup, removeRunCgroup } from '../../device-manager/process/cgroup.ts'
import { compileCache } from '../kit/compile-cache.ts'
import { makeTestGroup } from '../kit/control-group.ts'
import { repeats } from '../kit/forms.ts'
import { mountOwnTmp } from '../kit/own-tmp.ts'

/**
 * Runs that do all they can to end the daemon, the run hosts and their neighbours, or to take what these have recorded.
 * The whole system lives in namespaces of the test (processes, mounts, network, control groups, with a /tmp of its own), so that nothing of
 * this machine is in reach even where the wall is broken. `UNKILLABLE=1000` draws more, and others each time; `FAULT_SEED` draws
 * the same ones again.
 */
const count = repeats('UNKILLABLE', { short: 4, long: 16 })
const seed = process.env['UNKILLABLE'] === undefined ? { FAULT_SEED: '1' } : {}
const stage = join(import.meta.dirname, 'unkillable-stage.ts')

test(
  `${count} attacks of runs end neither the daemon nor the run beside them, and no event is lost`,
  { timeout: (count * 5 + 180) * 1_000 },
  async ({ skip }) => {
    if (process.platform !== 'linux') skip('namespaces are of Linux')
    // A control group that holds the system alone is all that shows of them, so that an attack on it hits nothing else.
    const group = makeTestGroup()
    if (group !== null) onTestFinished(() => void (killCgroup(group) && removeRunCgroup(group)))
    const enter = group === null ? 'exec "$@"' : `echo $$ >'${group}/cgroup.procs' && exec "$@"`
    const groups = `mount -t ${group === null ? 'tmpfs' : 'cgroup2'} none /sys/fs/cgroup`
    // The shell stays the first process, which takes away what is left without a parent.
    const setUp = `${groups} && ${mountOwnTmp('-o size=500m')} && ip link set lo up && "$@"; exit $?`
    const own = [
      '--user',
      '--map-root-user',
      '--pid',
      '--fork',
      '--mount',
      '--mount-proc',
      '--net',
      '--cgroup',
      '--kill-child=KILL',
    ]
    const node = [process.execPath, '--disable-warning=ExperimentalWarning', stage]
    const system = ['unshare', ...own, '/bin/sh', '-c', setUp, 'sh', ...node]
    const { stdout, stderr } = await promisify(execFile)('/bin/sh', ['-c', enter, 'sh', ...system], {
      env: {
        UNKILLABLE: String(count),
        ...seed,
        ...process.env,
        ...compileCache,
        SVC_TEST_PROGRAMS: inject('programs'),
        TMPDIR: '/tmp',
      },
      maxBuffer: 2 ** 26,
    })
    const seen = JSON.parse(stdout.trim().split('\n').at(-1) ?? 'null') as { problems: string[]; begun: number }
    expect(seen.problems, stderr).toEqual([])
    expect(seen.begun).toBeGreaterThanOrEqual(count)
  },
)
