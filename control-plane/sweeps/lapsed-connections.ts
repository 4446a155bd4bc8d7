import { inTransaction } from '../db/transaction.ts'
import { nextStatus } from '../resources/connections/machine.ts'
import { reasonOfLapse, statusAt } from '../resources/connections/rules.ts'
import { removeSignIn } from '../resources/connections/sign-in-store.ts'
import { findConnection, listLapsedConnections, replaceConnection } from '../resources/connections/store.ts'
import type { Sweep } from './sweeper.ts'

const atOnce = 200

/** Writes down that connections are expired whose time is over; readers know it already. */
export function lapsedConnectionsSweep({ everyMs }: { everyMs: number }): Sweep {
  return {
    name: 'lapsed_connections',
    everyMs,
    async run({ root, now, queue, log }) {
      for (const { id, workspaceId } of await listLapsedConnections(root, { before: now, limit: atOnce })) {
        const lapse = () =>
          inTransaction(root, async (tx) => {
            const row = await findConnection(tx, workspaceId, id)
            if (row === null || statusAt(row, now) === row.status) return
            const status = nextStatus(row.status, 'lapse') ?? row.status
            await removeSignIn(tx, id)
            const lapsed = { status, lapsesAt: null, updatedAt: now } as typeof row
            await replaceConnection(tx, row, { ...row, ...lapsed, statusReason: reasonOfLapse(row) })
            log.info({ connectionId: id, service: row.serviceId }, 'a connection is expired')
          })
        queue.add(workspaceId, lapse, id)
      }
    },
  }
}
