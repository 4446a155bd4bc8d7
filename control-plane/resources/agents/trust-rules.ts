import { harnesses } from '../../../shared/runs/harnesses.ts'
import { hasRole, type Caller } from '../../http/callers.ts'
import { ownsOrAdministers } from './rules.ts'
import type { AgentRow } from './store.ts'

/** Who may change what of an agent, by what the change lets run on somebody's machine (docs/trust.md). */

/**
 * Whoever decides which program an agent runs, and with which secrets, commands the account its device runs under. That is
 * for the agent's owner and workspace admins. Whoever adds a setting of that kind adds it to `decidesWhatRuns`.
 */
export const mayDecideWhatRuns = (caller: Caller, agent: Pick<AgentRow, 'ownerUserId'>): boolean =>
  ownsOrAdministers(agent, caller)

type Programs = Pick<AgentRow, 'harness'>

interface Change {
  before: Programs
  after: Programs
  /** Dotted names of what differs (`changedKeys`). */
  keys: readonly string[]
}

const runsOwnCommand = ({ harness }: Programs): boolean => harness !== null && harnesses[harness].runsOwnCommand

/** Another harness is a free choice among agent programs; a command is any program. */
const crossesToCommand = ({ before, after }: Change): boolean => runsOwnCommand(before) !== runsOwnCommand(after)

export const decidesWhatRuns = (change: Change): boolean =>
  change.keys.includes('runtime.command') || crossesToCommand(change)

/** Permissions are changed by workspace admins only. */
const touchesPermissions = ({ keys }: Change): boolean => keys.some((key) => key.startsWith('permissions.'))

/** Why the caller may not write these settings; null: they may. */
export function settingsRefusalOf(
  change: Omit<Change, 'before'> & { before: Programs & Pick<AgentRow, 'ownerUserId'> },
  caller: Caller,
): { message: string; param: string } | null {
  if (touchesPermissions(change) && !hasRole(caller, 'admin'))
    return { message: 'Only a workspace admin changes permissions.', param: 'config.permissions' }
  if (decidesWhatRuns(change) && !mayDecideWhatRuns(caller, change.before))
    return {
      message: "Only the agent's owner and workspace admins decide which program it runs.",
      param: change.keys.includes('runtime.command') ? 'config.runtime.command' : 'config.runtime.harness',
    }
  return null
}

/**
 * Whether an agent that is given away waits for its new owner's word: its runs would go to their devices. An admin's gift does
 * not, and neither does one to oneself.
 */
export const needsWordOf = (owner: { id: string }, caller: Caller): boolean =>
  !hasRole(caller, 'admin') && !(caller.kind === 'person' && caller.userId === owner.id)

/** What an agent may change of itself without an approval (document 1, "Agent settings"). */
const ownKeys = new Set([
  'agentMd',
  'runtime.model',
  'runtime.backupModel',
  'runtime.reasoningEffort',
  'runtime.sandboxSize',
  'runtime.harness',
  'runtime.maxTurns',
])

/** The harness `command` is none of an agent's own choices: whoever wakes the agent would make that choice through it. */
export const mayChangeItself = (change: Change): boolean =>
  change.keys.every((key) => ownKeys.has(key)) && !crossesToCommand(change)
