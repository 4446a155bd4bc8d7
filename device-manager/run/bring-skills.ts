import type { DeviceMessage } from '../../shared/device/protocol.ts'
import type { BroughtSkills } from '../run-host/wire/protocol.ts'
import type { BundleCache } from '../skills/bundle-cache.ts'
import { skillsToBring } from './hosts/files-to-bring.ts'
import { pluginBundlesOf } from '../../shared/runs/plugin-files.ts'
import type { RunState } from './machine.ts'

/**
 * Brings the skills of the workspace that the run is to have to this device, with the files of plugins, and tells the control plane what is
 * news of the skills.
 */
export async function bringSkills(
  bundles: Pick<BundleCache, 'place' | 'folder'>,
  { runId, fence, spec }: RunState,
  send: (message: DeviceMessage) => boolean,
): Promise<BroughtSkills> {
  const skills = skillsToBring(spec)
  const ofPlugins = pluginBundlesOf(spec.mcpServers).map((bundleHash) => ({ bundleHash }))
  const found = await bundles.place([...skills, ...ofPlugins])
  const ofSkills = new Set(skills.map(({ bundleHash }) => bundleHash))
  const placed = [...found.placed]
  const missed = found.missed.filter(({ bundleHash }) => ofSkills.has(bundleHash))
  if (placed.length > 0 || missed.length > 0) {
    const told = missed.map(({ bundleHash, reason }) => ({ bundleHash, reason }))
    send({ type: 'run.skills', runId, fence, placed, missed: told })
  }
  return { bundles: bundles.folder, missed }
}

/** Returns the bundles that runs still wait for: a run that has begun has its copies. */
export const wantedBundles = (runs: readonly RunState[]): Set<string> =>
  new Set(
    runs.flatMap(({ phase, spec }) =>
      phase === 'accepted' || phase === 'starting'
        ? [...(spec.skills ?? []).map(({ bundleHash }) => bundleHash), ...pluginBundlesOf(spec.mcpServers)]
        : [],
    ),
  )
