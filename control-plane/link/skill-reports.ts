import type { Knex } from 'knex'
import type { DeviceMessage } from '../../shared/device/protocol.ts'
import { specFor } from '../run/offers/offer.ts'
import { loadPlacementFacts, type Moment } from '../run/placement/facts.ts'
import { findAgent } from '../resources/agents/store.ts'
import { listSpecs } from '../resources/runs/details-store.ts'
import { findRun } from '../resources/runs/store.ts'
import { setUnavailable } from '../resources/skills/effective-store.ts'
import type { Link } from './registry.ts'

/**
 * Takes in which skills a device could bring to a run and which not. A device is believed about the skills of runs that it holds, and of
 * these about those that it was offered.
 */
export async function recordSkills(
  root: Knex,
  link: Pick<Link, 'publicId' | 'workspaceId'>,
  { runId, fence, placed, missed, moment }: DeviceMessage & { type: 'run.skills' } & { moment: Moment },
): Promise<void> {
  const { publicId, workspaceId } = link
  const run = await findRun(root, runId)
  if (run === null || run.device !== publicId || run.fence !== fence || run.endedAt !== null) return
  const [agent, spec] = [await findAgent(root, run.agentRef), (await listSpecs(root, [runId])).get(runId)]
  if (agent === null || spec?.skills == null) return
  const { ownerUuid, visibility } = agent
  const { skills } = specFor(publicId, {
    spec,
    run: { ownerUuid, isOfPrivateAgent: visibility === 'private', sessionDevice: publicId, cloud: null },
    facts: await loadPlacementFacts(root, workspaceId, moment),
  })
  const offered = new Set(skills?.map(({ bundleHash }) => bundleHash))
  const told = new Map<string, string | null>([
    ...placed.map((hash) => [hash, null] as const),
    ...missed.map(({ bundleHash, reason }) => [bundleHash, reason] as const),
  ])
  const changes = [...told].filter(([bundleHash]) => offered.has(bundleHash))
  for (const [bundleHash, reason] of changes) await setUnavailable(root, { workspaceId, bundleHash, reason })
}
