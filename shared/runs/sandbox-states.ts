/** The states of a sandbox while it is there (docs/sandbox.md). */
export const sandboxStates = ['wanted', 'creating', 'starting', 'linked', 'lost', 'salvaging', 'ended'] as const
export type SandboxState = (typeof sandboxStates)[number]
