import type { TriggerSource } from '../../shared/api/runs.ts'
import { otherWords, type Person } from './rules.ts'

// The person whom each trigger source names as the one who asked for the work. Closing, moving or watching something asks for nothing of
// what others wrote: what such an event sets going was asked for by whoever assigned it.

/**
 * - `assigner`: who assigned the task that is worked on
 * - `author`: who wrote the message
 * - `answerer`: who answered the approval or question
 * - `watcher`: who had the agent watch the task
 * - `setter`: who last changed what the automation starts, or whose session is compacted
 * - `starter`: who started the workflow, if its program is theirs, too
 * - `caller`: who called the route; of an agent, the person behind its run
 * - `stopped`: who asked for the run that was stopped, by a provider or to ask what nobody answered
 */
export type Asker = 'assigner' | 'author' | 'answerer' | 'watcher' | 'setter' | 'starter' | 'caller' | 'stopped'

export const askers = {
  assignment: ['assigner', 'caller'],
  mention: ['author', 'caller'],
  channel_message: ['author'],
  fan_in: ['assigner'],
  dependency_resolved: ['assigner'],
  task_watched: ['watcher'],
  approval_resolved: ['answerer', 'stopped'],
  webhook: ['setter'],
  cron: ['setter'],
  workflow_step: ['starter'],
  agent_request: ['caller'],
  manual: ['caller', 'stopped'],
  heartbeat: [],
  unknown: [],
} as const satisfies Record<TriggerSource, readonly Asker[]>

/** The reason why an agent is woken, who asked for it, and whose words the run follows beside theirs. */
export interface WakeOrigin {
  triggerSource: TriggerSource
  causedByUuid: Person
  wordsBy: readonly Person[]
}

/** Returns what a wake says of who asked for it. Compiles only with an asker that the table gives to the trigger source. */
export function asked<Source extends TriggerSource>(
  triggerSource: Source,
  as: { [By in (typeof askers)[Source][number]]?: Person },
  wordsBy: readonly Person[] = [],
): WakeOrigin & { triggerSource: Source } {
  const [person = null] = Object.values(as as Record<string, Person>)
  return { triggerSource, causedByUuid: person, wordsBy: otherWords(person, wordsBy) }
}
