import type { ToolPermissions } from '../runs/spec.ts'

type Mode = ToolPermissions['defaultMode']

/** Lists and mode of an agent as a run of it gets them: without a mode of its own that of the workspace, and without any `full`. */
export function effectivePermissions(
  agent: Pick<ToolPermissions, 'allow' | 'ask' | 'deny'> & { defaultMode: Mode | null },
  workspace: { toolPermissionDefault: Mode | null },
): ToolPermissions {
  const { allow, ask, deny, defaultMode } = agent
  return { allow, ask, deny, defaultMode: defaultMode ?? workspace.toolPermissionDefault ?? 'full' }
}
