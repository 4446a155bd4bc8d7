import type { PersonUuid } from '../../../shared/lib/ids.ts'
import { harnesses } from '../../../shared/runs/harnesses.ts'
import { hasRole, type Caller } from '../../http/callers.ts'
import { ownsOrAdministersAgent } from './rules.ts'
import type { AgentRow } from './store.ts'

// Rules about who may change an agent, depending on what the change lets run on somebody's machine (docs/trust.md).

/**
 * Whoever decides which program an agent runs, and with which secrets, commands the account of its device. So only the
 * agent's owner and workspace admins may decide it. A new setting of that kind must be added to `decidesWhatRuns`.
 */
export const mayDecideWhatRuns = (caller: Caller, agent: Pick<AgentRow, 'ownerUuid'>): boolean =>
  ownsOrAdministersAgent(agent, caller)

type Programs = Pick<AgentRow, 'harness'>

interface Change {
  before: Programs
  after: Programs
  /** Dotted names of the changed settings (`changedKeys`). */
  keys: readonly string[]
}

const runsOwnCommand = ({ harness }: Programs): boolean => harness !== null && harnesses[harness].runsOwnCommand

/** Agent programs may be exchanged freely, but a command can be any program. */
const crossesToCommand = ({ before, after }: Change): boolean => runsOwnCommand(before) !== runsOwnCommand(after)

/** The program that runs as an agent's own command, how svc speaks to it, and folders that are read on the device, whose skills bring scripts. */
const programKeys: ReadonlySet<string> = new Set(['runtime.command', 'runtime.protocol', 'runtime.skillFolders'])

export const decidesWhatRuns = (change: Change): boolean =>
  change.keys.some((key) => programKeys.has(key)) || crossesToCommand(change)

/** Permissions are changed by workspace admins alone. */
const touchesPermissions = ({ keys }: Change): boolean => keys.some((key) => key.startsWith('permissions.'))

/** The reason why the caller may not write these settings; null: they may. */
export function settingsRefusalOf(
  change: Omit<Change, 'before'> & { before: Programs & Pick<AgentRow, 'ownerUuid'> },
  caller: Caller,
): { message: string; param: string } | null {
  if (touchesPermissions(change) && !hasRole(caller, 'admin'))
    return { message: 'Only a workspace admin changes permissions.', param: 'config.permissions' }
  if (decidesWhatRuns(change) && !mayDecideWhatRuns(caller, change.before))
    return {
      message: "Only the agent's owner and workspace admins decide which program it runs.",
      param: `config.${change.keys.find((key) => programKeys.has(key)) ?? 'runtime.harness'}`,
    }
  return null
}

/**
 * Returns whether an agent that is given away waits for its new owner's agreement, because its runs would go to their devices. A gift by an
 * admin, or to oneself, does not wait.
 */
export const needsWordOf = (owner: { id: PersonUuid }, caller: Caller): boolean =>
  !hasRole(caller, 'admin') && !(caller.kind === 'person' && caller.personUuid === owner.id)

/** The settings that an agent may change itself without an approval. */
const ownKeys = new Set([
  'agentMd',
  'runtime.model',
  'runtime.backupModel',
  'runtime.reasoningEffort',
  'runtime.sandboxSize',
  'runtime.harness',
  'runtime.fallbackHarness',
  'runtime.maxTurns',
])

/**
 * An agent may not choose the harness `command` for itself: whoever wakes the agent would make that choice through it.
 */
export const mayChangeItself = (change: Change): boolean =>
  change.keys.every((key) => ownKeys.has(key)) && !crossesToCommand(change)
