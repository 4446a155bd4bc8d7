import { idFrom } from '../../shared/lib/ids.ts'
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import type { Db } from '../db/open.ts'
import type { Frame } from '../resources/runs/log-store.ts'
import { LogHashes } from './log-hashes.ts'

const frame = (runId: string, seq: number): Frame => {
  const body = Buffer.from(`${runId} ${seq}\n`)
  return { runId: idFrom(runId), fence: 1, firstSeq: seq, lastSeq: seq, sha256: '', body, receivedAt: 0 }
}
const noDatabase = null as unknown as Db

test('hashes of logs that grew longest ago are dropped, and of runs that are at work none', async () => {
  const hashes = new LogHashes(2)
  hashes.add(frame('run_live', 1))
  for (let n = 0; n < 50; n++) {
    hashes.add(frame(`run_gone_${n}`, 1))
    hashes.add(frame('run_live', n + 2))
  }
  expect(hashes.count).toBe(2)
  const whole = createHash('sha256')
  for (let seq = 1; seq <= 51; seq++) whole.update(`run_live ${seq}\n`)
  expect(await hashes.of(noDatabase, { runId: idFrom('run_live'), fence: 1, seq: 51 })).toBe(whole.digest('hex'))
})
