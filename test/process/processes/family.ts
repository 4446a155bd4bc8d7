import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect } from 'vitest'
import { identityOf, type ProcessIdentity } from '../../../device-manager/process/identity.ts'
import { endTree, type EndTreeOptions, type EndTreeResult } from '../../../device-manager/process/kill.ts'
import { markName } from '../../../device-manager/process/orphans.ts'
import { realWorld } from '../../../shared/lib/world.ts'

/** A run's processes for a test: a leader in a session of its own, and a folder in which each process leaves a file. */
export interface Family {
  runId: string
  folder: string
  child: ChildProcess
  leader: ProcessIdentity
  /** Resolves with the leader's status. */
  exited: Promise<{ exitCode: number | null; signal: NodeJS.Signals | null }>
  /** Waits until `count` files stand in the folder; answers their names. */
  present(count: number): Promise<string[]>
  end(options?: Partial<EndTreeOptions>): Promise<EndTreeResult>
  /** Ends the test: fails when anything that carries this family's folder in its environment or arguments lives. */
  assertGone(): Promise<void>
}

/** Short steps: the order and the effects are the same as with the long ones. */
export const shortSteps = { interruptMs: 400, terminateMs: 300, sweepMs: 10_000 }

/** Keeps the script from being over before its leader was looked at. */
const waitForGo = 'until [ -e $D/.go ]; do sleep 0.01; done; rm $D/.go'

/** Runs a Bash script. `$D` is the folder; `touch $D/name` says that a process is there and has set up its signals. */
export async function startFamily(script: string, options: { mark?: boolean } = {}): Promise<Family> {
  const folder = mkdtempSync(path.join(tmpdir(), 'svc-family-'))
  const runId = realWorld.id('run_')
  const env = { PATH: process.env['PATH'], D: folder, ...(options.mark === false ? {} : { [markName]: runId }) }
  const child = spawn('bash', ['-c', `${waitForGo}\n${script}`], { detached: true, stdio: 'ignore', env })
  const exited = new Promise<{ exitCode: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once('exit', (exitCode, signal) => resolve({ exitCode, signal }))
  })
  const leader = identityOf(child.pid!)
  if (leader === null) throw new Error('The script could not be started.')
  writeFileSync(path.join(folder, '.go'), '')
  return {
    runId,
    folder,
    child,
    leader,
    exited,
    present: async (count) => {
      await until(() => !existsSync(path.join(folder, '.go')) && readdirSync(folder).length >= count)
      return readdirSync(folder)
    },
    end: (more) =>
      endTree({
        runId,
        leader,
        pgid: leader.pid,
        cgroup: null,
        exclude: [],
        world: realWorld,
        steps: shortSteps,
        ...more,
      }),
    assertGone: async () => {
      const left = processesAround(folder)
      for (const pid of left) process.kill(pid, 'SIGKILL')
      rmSync(folder, { recursive: true, force: true })
      expect(left).toEqual([])
    },
  }
}

/** Live processes with `text` in their environment or arguments, found without the code under test. */
export function processesAround(text: string): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 1 && pid !== process.pid)
    .filter((pid) => {
      try {
        const isZombie = /\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
        return (
          !isZombie &&
          ['environ', 'cmdline'].some((file) => readFileSync(`/proc/${pid}/${file}`, 'latin1').includes(text))
        )
      } catch {
        return false
      }
    })
}

export async function until(condition: () => boolean, limitMs = 20_000): Promise<void> {
  const deadline = performance.now() + limitMs
  while (!condition()) {
    if (performance.now() > deadline) throw new Error('It did not come about in time.')
    await realWorld.sleep(5)
  }
}

export function contentOf(family: Family, name: string): string {
  return readFileSync(path.join(family.folder, name), 'utf8')
}
