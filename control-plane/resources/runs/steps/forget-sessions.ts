import type { AgentRef } from '../../../../shared/lib/ids.ts'
import type { Db } from '../../../db/open.ts'
import { findDetails, replaceSpec } from '../details-store.ts'
import { takeBackOffer } from '../../../run/offers/lease.ts'
import { listLiveOfAgent } from '../live-store.ts'

/** Runs of the agent that no device executes yet begin a session of their own. */
export async function forgetSessions(db: Db, agentRef: AgentRef, now: number): Promise<void> {
  for (const run of await listLiveOfAgent(db, agentRef)) {
    if (run.leaseState === 'claimed') continue
    const details = await findDetails(db, run.id)
    if (!details || details.spec.resumeSessionId === null) continue
    // The device that was offered the run knows its spec: it is taken back, and offered anew.
    if (run.leaseState === 'offered' && !(await takeBackOffer(db, run, { at: now, why: 'session_forgotten' }))) continue
    await replaceSpec(db, run.id, { ...details.spec, resumeSessionId: null })
  }
}
