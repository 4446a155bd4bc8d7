import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { realWorld } from '../../shared/lib/world.ts'
import { waitFor } from './programs.ts'
import type { TestApi } from './system-api.ts'
import type { TestDevice } from './system-device.ts'
import type { TestSystem } from './system.ts'

const harnessFile = resolve(import.meta.dirname, 'fake-harness.mjs')

export interface ScenarioOptions {
  /** Steps of the scripted harness; `GATES/name` stands for a file by which the test and the harness meet. */
  steps: readonly string[]
  device?: TestDevice
  api?: TestApi
}

/** An agent that runs the scripted harness in a git repository of its own. */
export interface Scenario {
  agentId: string
  folder: string
  /** Says what `GATES/` stands for. */
  gates: string
  /** The commit the repository begins on. */
  commit: string
  api: TestApi
  device: TestDevice
  start(prompt?: string): Promise<string>
  /** Returns how often the harness was started, by its own account; for one run, or in all. */
  starts(runId?: string): number
  /** Lets the harness go on past `await=GATES/name`. */
  open(name: string): void
  /** Waits until the harness was at `touch=GATES/name`. */
  reached(name: string): Promise<void>
}

/**
 * Steps of a harness that prints 600 lines, of which a test says when: it waits at `half` for `more`, prints the most while
 * whoever reads it is away, and waits at `alone` for `end`.
 */
export const stepsWhileAlone = [
  'lines=50',
  'touch=GATES/half',
  'await=GATES/more',
  'lines=500',
  'touch=GATES/alone',
  'await=GATES/end',
  'lines=50',
]

export async function scenario(system: TestSystem, options: ScenarioOptions): Promise<Scenario> {
  const { api = system.api, device = system.device } = options
  const name = realWorld.id('s')
  const gates = join(system.root, `${name}-gates`)
  const starts = join(system.root, `${name}-starts`)
  mkdirSync(gates)
  const folder = join(system.root, `${name}-repo`)
  const commit = makeRepo(folder)
  const steps = options.steps.map((step) => step.replaceAll('GATES/', `${gates}/`))
  const { shortId } = await api.addFolder({ displayName: name, rootPath: folder, deviceId: device.identity.publicId })
  const agent = await api.createAgent({
    name,
    harness: 'command',
    defaultFolderId: shortId,
    command: [process.execPath, harnessFile, `starts=${starts}`, ...steps],
  })
  return {
    agentId: agent.id,
    folder,
    gates,
    commit,
    api,
    device,
    start: (prompt) => api.startRun(agent.id, prompt),
    starts: (runId) => {
      const lines = existsSync(starts) ? readFileSync(starts, 'utf8').split('\n').filter(Boolean) : []
      return runId === undefined ? lines.length : lines.filter((line) => line.includes(`"runId":"${runId}"`)).length
    },
    open: (gate) => writeFileSync(join(gates, gate), ''),
    reached: async (gate) => {
      await waitFor(() => existsSync(join(gates, gate)), `the harness is at ${gate}`, { about: () => device.log })
    },
  }
}

/** A repository with one commit, whatever this machine's git is set up to. */
export function makeRepo(folder: string): string {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'README.md'), '# Test\n\nA repository.\n')
  writeFileSync(join(folder, '.gitignore'), 'ignored/\n')
  return shellIn(folder, beginRepo).trim()
}

// One shell instead of four programs: a process as large as a test's needs some ten milliseconds to start one.
const beginRepo = `git init -q -b main; git add -A
  git -c user.name=Test -c user.email=test@example.com commit -q -m Begin; git rev-parse HEAD`

/** Runs a script of the shell, which ends at the first command that fails. */
export function shellIn(folder: string, script: string, args: readonly string[] = [], input?: string): string {
  return within(folder, ['sh', '-ec', script, 'sh', ...args], input)
}

export function git(folder: string, ...args: readonly string[]): string {
  return within(folder, ['git', ...args]).trim()
}

function within(folder: string, [program, ...args]: readonly [string, ...string[]], input?: string): string {
  return execFileSync(program, args, {
    cwd: folder,
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    ...(input === undefined ? {} : { input }),
    env: {
      PATH: process.env['PATH'] ?? '',
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_CONFIG_NOSYSTEM: '1',
    },
  })
}

/** Returns what `lines=count` prints from line `from` on, as a terminal shows it. Computed here, not taken from the harness. */
export function printedLines(count: number, { from = 1, size = 32 } = {}): string {
  let text = ''
  for (let number = from; number < from + count; number++) {
    const payload = `${number}:${'abcdefghijklmnopqrstuvwxyz0123456789'.repeat(1 + Math.ceil(size / 36))}`.slice(
      0,
      size,
    )
    text += `${number} ${payload} ${createHash('sha256').update(payload).digest('hex')}\r\n`
  }
  return text
}
