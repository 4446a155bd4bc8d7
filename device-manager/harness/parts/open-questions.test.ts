import { describe, expect, it } from 'vitest'
import type { CallDecision } from '../adapter.ts'
import { OpenQuestions } from './open-questions.ts'

const allow: CallDecision = { behavior: 'allow', rule: 'Bash' }
const deny = (message: string) => ({ behavior: 'deny', message }) as const

describe('the open questions of a harness', () => {
  it('are answered once each, under ids that the harness does not choose', () => {
    const open = new OpenQuestions<{ id: string }>()
    const [first, second] = [{ id: 'same' }, { id: 'other' }].map((question) => open.raise(question)![0]!)
    expect(first).not.toBe(second)
    expect(open.answer(first!, allow)).toEqual({ question: { id: 'same' }, decision: allow })
    expect(open.answer(first!, allow)).toBeNull()
    expect(open.answer('same', allow)).toBeNull()
  })

  it('about several calls have an answer when all are answered: yes where all are allowed', () => {
    const open = new OpenQuestions<{ id: string }>()
    const answers = (decisions: readonly CallDecision[]) => {
      const askIds = open.raise({ id: 'patch' }, decisions.length)!
      return decisions.map((decision, at) => open.answer(askIds[at]!, decision)?.decision ?? null)
    }
    expect(answers([allow, allow])).toEqual([null, allow])
    expect(answers([allow, deny('no'), allow])).toEqual([null, null, deny('no')])
    expect(answers([deny('first'), deny('second')])).toEqual([null, deny('first')])
    expect(answers([deny('first'), { ...deny('second'), stop: true }])).toEqual([
      null,
      { ...deny('first'), stop: true },
    ])
  })

  it('are forgotten with all their parts when another comes under the same id', () => {
    const open = new OpenQuestions<{ id: string }>()
    const askIds = open.raise({ id: 'twin' }, 2)!
    expect(open.forget('twin')).toBe(true)
    expect(askIds.map((askId) => open.answer(askId, allow))).toEqual([null, null])
    expect(open.forget('twin')).toBe(false)
  })

  it('are not more than the run host is asked at once', () => {
    const open = new OpenQuestions<{ id: number }>(2)
    const [askId] = open.raise({ id: 1 })!
    open.raise({ id: 2 })
    expect(open.raise({ id: 3 })).toBeNull()
    open.answer(askId!, allow)
    expect(open.raise({ id: 3 })).toHaveLength(1)
  })
})
