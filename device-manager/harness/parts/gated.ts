import type { RunSpec } from '../../../shared/runs/spec.ts'

/** The agent's lists have a say in what its tools do. */
export const isGated = ({ permissions: { defaultMode, ask, deny } }: RunSpec): boolean =>
  defaultMode !== 'full' || ask.length + deny.length > 0
