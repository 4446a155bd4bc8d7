import { sandboxSizes, type SandboxSize } from '../../../shared/api/agents.ts'

/** The next size up; null: there is no larger one. */
export const nextSize = (size: SandboxSize): SandboxSize | null => sandboxSizes[sandboxSizes.indexOf(size) + 1] ?? null
