import { pluginBundlesOf } from '../../../shared/runs/plugin-files.ts'
import { takesSkills } from '../../../shared/runs/spec.ts'
import type { RunState } from '../machine.ts'

type Spec = RunState['spec']

/** The skills of the workspace that the run takes. */
export const skillsToBring = (spec: Spec) => (takesSkills(spec) ? (spec.skills ?? []) : [])

/** Says whether the run takes any, or files of plugins whose programs it runs. */
export const hasFilesToBring = (spec: Spec): boolean =>
  skillsToBring(spec).length > 0 || pluginBundlesOf(spec.mcpServers).length > 0
