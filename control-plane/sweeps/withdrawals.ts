import type { RenewalDependencies } from '../resources/connections/renewal.ts'
import { listDueWithdrawals } from '../resources/connections/withdrawal-store.ts'
import { withdrawQueued } from '../resources/connections/withdrawing.ts'
import type { Sweep } from './sweeper.ts'

const atOnce = 50

/** Tells providers of tokens whose connections are gone. Each has a line of its own: one that is slow holds up no others. */
export function withdrawalsSweep({ deps, everyMs }: { deps: RenewalDependencies; everyMs: number }): Sweep {
  return {
    name: 'withdrawals',
    everyMs,
    async run({ root, now, queue }) {
      for (const row of await listDueWithdrawals(root, { now, limit: atOnce }))
        queue.add(row.id, () => withdrawQueued(deps, row), row.id)
    },
  }
}
