import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RunSpec } from '../../shared/runs/spec.ts'
import { isAlive, waitFor } from './programs.ts'
import type { HarnessMachine } from './real-harness.ts'

const module = (path: string) => JSON.stringify(join(import.meta.dirname, path))

/** Drives the harness until a call is asked, says so, and never answers. */
const program = `
import { driveHarness } from ${module('real-harness.ts')}
import { specOf } from ${module('harness-recordings.ts')}
import { adapterOfRun } from ${module('../../device-manager/harness/registry.ts')}
const { version, spec, ...machine } = JSON.parse(process.argv[1])
driveHarness({
  machine: { ...machine, running: new Set() },
  adapter: adapterOfRun(specOf(spec)),
  version,
  spec,
  decide: () => (console.log('asked'), null),
})
`

/** Has a process of its own drive the harness, kills it while a call waits for its answer, and waits for the end of the harness. */
export async function killTheDecider(
  { home, cwd, env }: HarnessMachine,
  { version, spec }: { version: string; spec: Partial<RunSpec> },
): Promise<void> {
  const given = JSON.stringify({ home, cwd, env, version, spec })
  const decider = spawn(process.execPath, ['--input-type=module', '-e', program, given], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [said] = (await Promise.race([once(decider.stdout, 'data'), once(decider, 'exit')])) as unknown[]
  if (String(said).trim() !== 'asked') throw new Error(`Nothing was asked: ${String(said)}`)
  const harness = childrenOf(decider.pid!)
  if (!harness.some(isAlive)) throw new Error('The harness does not live while its call waits.')
  decider.kill('SIGKILL')
  await waitFor(() => !harness.some(isAlive), 'the harness ends by itself', { ms: 60_000 })
}

function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  return text === '' ? [] : text.split(' ').map(Number)
}
