import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench } from './context.ts'
import type { Result } from './measure.ts'

/**
 * The requests of all routes are those of the tests (`test/api/facts`), which exist only within Vitest. So it measures in a run of a
 * project of its own.
 */
export const growth: Bench = {
  name: 'growth',
  about: 'processor time of each route in a workspace of 20,000 tasks, against one of 50; idle; removal and export',
  async run(context) {
    const { scratch, rounds } = context
    const root = join(import.meta.dirname, '../..')
    const file = join(scratch, 'growth.json')
    const vitest = spawn(
      process.execPath,
      [join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--project', 'bench', '--reporter', 'dot'],
      {
        cwd: root,
        env: { ...process.env, SVC_BENCH_RESULTS: file, SVC_BENCH_ROUNDS: String(rounds) },
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    )
    let told = ''
    vitest.stdout.on('data', (chunk: Buffer) => (told += chunk.toString()))
    const [status] = (await once(vitest, 'close')) as [number | null]
    if (!existsSync(file)) throw new Error(`the measurement failed:\n${told}`)
    if (status !== 0) context.say(`a part of the measurement failed:\n${told}`)
    const { results, notes } = JSON.parse(readFileSync(file, 'utf8')) as { results: Result[]; notes: string[] }
    for (const note of notes) context.say(note)
    return results
  },
}
