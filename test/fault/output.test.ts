import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { repeats } from '../kit/forms.ts'
import { checkInvariants } from '../kit/invariants.ts'
import { TestSystem } from '../kit/system.ts'
import { scenario } from '../kit/system-scenario.ts'

// Fault matrix, row 54, through the whole system: the end of what a short program prints is not lost.

let system: TestSystem
beforeAll(async () => {
  system = await TestSystem.start()
})
afterAll(() => system?.stop())

const rounds = repeats('FAULT_OUTPUTS', { short: 2, long: 2 })
const atOnce = 4
const text = Buffer.alloc(20 * 1024, 'abcdefghij').toString()

test('row 54: 200 times echo of 20 KiB in one run: no byte is lost', async () => {
  const run = await scenario(system, { steps: ['run=for i in $(seq 200); do /bin/echo "$i $SVC_PROMPT"; done'] })
  const printed = Array.from({ length: 200 }, (_, index) => `${index + 1} ${text}\r\n`).join('')
  const runId = await run.start(text)
  const { output } = await checkInvariants(system, run, runId, { exitReason: 'completed', isCutOff: true })
  expect(sha256(output.toString())).toBe(sha256(`${printed}run exited 0\r\n`))
})

test(`row 54: 20 KiB as the last thing of runs, ${atOnce} at a time`, async () => {
  const run = await scenario(system, { steps: [] })
  await run.api.call('PUT', `/agents/${run.agentId}/config`, {
    config: { runtime: { command: ['/bin/sh', '-c', 'exec /bin/echo -n "$SVC_PROMPT"'] } },
  })
  for (let round = 0; round < rounds; round++) {
    const ids = await Promise.all(Array.from({ length: atOnce }, () => run.start(text)))
    for (const runId of ids)
      await checkInvariants(system, run, runId, {
        exitReason: 'completed',
        output: text,
        starts: 0,
        hasChangeSet: false,
      })
  }
})

function sha256(value: string): string {
  return createHash('sha256').update(value).digest('hex')
}
