import type { TestContext } from 'vitest'
import type { WallTool } from '../../device-manager/wall/spec.ts'
import { hasBubblewrap } from './wall.ts'

/** The two ways to make the wall on Linux. */
export const linuxTools: readonly WallTool[] = ['bwrap', 'unshare']

/** Skips, and has it counted as skipped, what this machine has no program or no kernel for. */
export function needsTool(tool: WallTool, { skip }: Pick<TestContext, 'skip'>): void {
  if (process.platform !== 'linux') skip('namespaces are of Linux')
  if (tool === 'bwrap' && !hasBubblewrap) skip('bubblewrap is not installed')
}
