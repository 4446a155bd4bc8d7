import type { ToolPermissions } from './spec.ts'

/** The agent's lists have a say in what its tools do. */
export const hasCallChecks = ({ permissions: { defaultMode, ask, deny } }: { permissions: ToolPermissions }): boolean =>
  defaultMode !== 'full' || ask.length + deny.length > 0
