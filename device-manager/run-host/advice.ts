import type { HarnessOutcome } from '../harness/adapter.ts'

/** What a person can do about an ending that the words of a provider tell, and these words do not say. */
const advice: readonly { isAbout: (ended: Ended, message: string) => boolean; say: string }[] = [
  {
    isAbout: (_, message) => /credit balance|insufficient[_ ](credit|fund|quota|balance)|billing/i.test(message),
    say: 'Add credit at the provider, or let the agent use another key or account.',
  },
  {
    isAbout: ({ exitReason }, message) =>
      exitReason === 'error' &&
      /model/i.test(message) &&
      /not found|not exist|may not have access|not_found|unknown model/i.test(message),
    say: 'Choose another model for the agent (`svc agent config set @agent --model NAME`).',
  },
  {
    isAbout: ({ exitReason, limitResetsAt }) => exitReason === 'rate_limited' && limitResetsAt === undefined,
    say: 'Nobody said when the limit is over: retry the run later, or give the agent a fallback harness.',
  },
  {
    isAbout: ({ providerFailed }) => providerFailed === true,
    say: 'The provider has trouble: retry the run later, or give the agent a backup model.',
  },
]

type Ended = Pick<HarnessOutcome, 'exitReason' | 'limitResetsAt' | 'providerFailed'>

/** Returns the message with what to do about it. */
export function advised(ended: Ended, message: string | null): string | null {
  if (message === null) return null
  const fitting = advice.find(({ isAbout }) => isAbout(ended, message))
  // A harness that says it by itself has the better words.
  if (fitting === undefined || /another model|sign in again/i.test(message)) return message
  return `${message.trimEnd().replace(/([^.!?)])$/, '$1.')} ${fitting.say}`
}
