import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { createCatalog } from '../../control-plane/catalog/catalog.ts'
import { Ingest } from '../../control-plane/link/ingest.ts'
import type { IngestItem } from '../../control-plane/link/ingest-batch.ts'
import { silentLog } from '../../control-plane/process/log.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { openSqlite } from '../kit/database.ts'

/** When what was pushed is stored and answered, whatever the moment at which it comes. */

const body = Buffer.from('{"seq":1,"at":1,"kind":"text","data":{"text":"x"}}\n')
/** Of a run that nobody knows, which is refused: an answer like any other. */
const frame = (answered: () => void): IngestItem => ({
  kind: 'events',
  header: {
    type: 'run.events',
    runId: 'run_0000000000000000',
    fence: 1,
    firstSeq: 1,
    lastSeq: 1,
    kinds: { text: 1 },
    sha256: createHash('sha256').update(body).digest('hex'),
  },
  body,
  device: 'dvc_a',
  workspaceId: 'w',
  send: () => answered(),
  giveUp: () => undefined,
})

test('what comes while the work before it is just done is not left lying', async () => {
  const database = openSqlite()
  const ingest = new Ingest({
    root: database.root,
    world: realWorld,
    log: silentLog,
    bus: { signal: () => undefined },
    counters: { refused: () => undefined, integrity: () => undefined, stored: () => undefined },
    catalog: createCatalog([]),
    onEnded: () => undefined,
  })
  let answers = 0
  const pushed = () =>
    new Promise<void>((resolve) => {
      const answered = () => {
        answers++
        resolve()
      }
      void ingest.push(frame(answered))
    })
  const moments = 40
  for (let turns = 0; turns < moments; turns++) {
    await pushed()
    for (let turn = 0; turn < turns; turn++) await Promise.resolve()
    await pushed()
    await pushed()
  }
  expect(answers).toBe(3 * moments)
  await database.close()
})
