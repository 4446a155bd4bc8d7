import { idFrom } from '../../../shared/lib/ids.ts'
import { openSpool, SpoolBusyError } from '../../../device-manager/spool/spool.ts'

/** Appends numbered rows to a spool, some by one and some in batches, as a run host does. */
const [path = '', runId = '', count = '0'] = process.argv.slice(2)
const spool = openSpool(path, { repair: false, reserveBytes: 64 * 1024 })
for (let seq = 1; seq <= Number(count);) {
  const size = Math.min(1 + (seq % 20), Number(count) - seq + 1)
  const rows = Array.from({ length: size }, (_, i) => ({
    seq: seq + i,
    line: Buffer.from(`${JSON.stringify({ seq: seq + i, of: runId })}\n`),
  }))
  try {
    spool.append({ runId: idFrom(runId), fence: 1 }, rows)
    seq += size
  } catch (error) {
    if (!(error instanceof SpoolBusyError)) throw error
  }
}
spool.close()
