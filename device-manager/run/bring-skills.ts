import type { DeviceMessage } from '../../shared/device/protocol.ts'
import type { BundleCache } from '../skills/bundle-cache.ts'
import type { BroughtSkills } from './hosts/run-hosts.ts'
import type { RunState } from './machine.ts'

/** Brings the skills of the workspace that the run is to have to this device, and tells the control plane what is news of them. */
export async function bringSkills(
  bundles: Pick<BundleCache, 'place' | 'folder'>,
  { runId, fence, spec }: RunState,
  send: (message: DeviceMessage) => boolean,
): Promise<BroughtSkills> {
  const found = await bundles.place(spec.skills ?? [])
  const [placed, missed] = [[...found.placed], [...found.missed]]
  if (placed.length > 0 || missed.length > 0) send({ type: 'run.skills', runId, fence, placed, missed })
  return { bundles: bundles.folder, missed }
}

/** A run that has begun has its copies. */
export const wantedBundles = (runs: readonly RunState[]): Set<string> =>
  new Set(
    runs.flatMap(({ phase, spec }) =>
      phase === 'accepted' || phase === 'starting' ? (spec.skills ?? []).map(({ bundleHash }) => bundleHash) : [],
    ),
  )
