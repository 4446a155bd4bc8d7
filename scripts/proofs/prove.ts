import { waitFor, randomOf } from '../../test/kit/programs.ts'
import type { Scenario } from '../../test/kit/system-scenario.ts'
import { Account } from './promises.ts'
import type { Proof, ProofOptions } from './report.ts'
import { openStage } from './stage.ts'
import { changedEndings, guard, newAsking, newWorker, work } from './workers.ts'

export interface ProveOptions extends ProofOptions {
  minutes: number
}

const workerCount = 3
/** The time in which a device without faults sends what it still holds. */
const restMs = 60_000

export async function prove({ seed, minutes, databaseUrl, say, stopped }: ProveOptions): Promise<Proof> {
  const account = new Account()
  const begun = performance.now()
  const stage = await openStage({ random: randomOf(seed), account, databaseUrl, say })
  try {
    // Those who work draw for themselves, so that the faults of a seed do not hang on how fast runs go.
    const own = { ...stage, random: randomOf(seed + 1) }
    const workers: Scenario[] = []
    for (let number = 1; number <= workerCount; number++) workers.push(await newWorker(own))
    const asking = await newAsking(own)
    const until = performance.now() + minutes * 60_000
    const over = () => stopped.aborted || performance.now() >= until
    const [worked, madeTooOften] = await Promise.all([
      Promise.all(workers.map((worker) => work(own, worker, over))),
      guard(own, asking, over),
      stage.strikeUntil(over),
    ])
    const all = worked.flatMap(({ ended }) => ended)
    const { device } = stage.system
    await waitFor(async () => (await device.spoolRuns()).length === 0, 'the device has told all', { ms: restMs })
    for (const runId of await changedEndings(stage, all))
      account.add([{ promise: 'ending', runId, why: 'its ending is another one than was told before' }])
    account.add(madeTooOften())
    // Looked at last: what comes again may come long after the run was told to have ended.
    for (const [runId, count] of worked.flatMap(({ starts }) => Object.entries(starts())))
      if (count > 1) account.add([{ promise: 'starts', runId, why: `its harness was started ${count} times` }])
    return {
      isKept: account.isKept(),
      runs: all.length,
      seconds: (performance.now() - begun) / 1_000,
      faults: account.faults,
      rows: account.rows(),
      broken: account.broken,
    }
  } finally {
    await stage.system.stop()
  }
}
