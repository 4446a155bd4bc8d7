import { harnessFactsOf } from './harnesses.ts'
import type { RunSpec } from './spec.ts'

/** Whether the run is given skills: its agent names folders of them, and its harness can be given some. */
export const takesSkills = (spec: Pick<RunSpec, 'harness' | 'protocol' | 'skillFolders'>): boolean =>
  spec.skillFolders != null && !harnessFactsOf(spec).ignores.includes('skillFolders')
