import type { HarnessSetting } from '../../shared/runs/harnesses.ts'
import type { HarnessOutcome } from '../harness/adapter.ts'
import { isProvidersFault } from '../harness/parts/failure.ts'

/** Advice for a person about endings that are recognised by the words of a provider, where these words give none. */
const advice: readonly { isAbout: (ended: Ended, message: string) => boolean; say: string; orBackup?: string }[] = [
  {
    isAbout: (_, message) => /credit balance|insufficient[_ ](credit|fund|quota|balance)|billing/i.test(message),
    say: 'Add credit at the provider, or let the agent use another key or account.',
  },
  {
    isAbout: ({ failure }) => failure === 'unknown_model',
    say: 'Choose another model for the agent (`svc agent config set @agent --model NAME`).',
  },
  {
    isAbout: ({ exitReason, limitResetsAt }) => exitReason === 'rate_limited' && limitResetsAt === undefined,
    say: 'Nobody said when the limit is over: retry the run later, or give the agent a fallback harness.',
  },
  {
    isAbout: ({ failure }) => failure === 'output_limit',
    say: 'Ask for less at once, or for several smaller files.',
  },
  {
    isAbout: ({ failure }) => failure === 'context_full',
    say: 'The next run of the agent begins a new session.',
  },
  {
    isAbout: ({ failure }) => isProvidersFault(failure),
    say: 'The provider has trouble, or is not reached: retry the run later',
    orBackup: ', or give the agent a backup model',
  },
]

type Ended = Pick<HarnessOutcome, 'exitReason' | 'limitResetsAt' | 'failure'>

/** Returns the message with what to do about it. `ignores`: settings for which the run's harness has nothing. */
export function advised(ended: Ended, message: string | null, ignores: readonly HarnessSetting[] = []): string | null {
  if (message === null) return null
  const fitting = advice.find(({ isAbout }) => isAbout(ended, message))
  // A harness that says it by itself has the better words.
  if (fitting === undefined || /sign in again/i.test(message)) return message
  const { say, orBackup } = fitting
  const told = orBackup === undefined ? say : `${say}${ignores.includes('backupModel') ? '' : orBackup}.`
  return `${message.trimEnd().replace(/([^.!?)])$/, '$1.')} ${told}`
}
