import { idFrom, type ActorRef, type QuestionId } from '../../../shared/lib/ids.ts'
import { expect, test } from 'vitest'
import { answeredPrompt, askRefusalOf, judgeAnswer, systemAnswer } from './rules.ts'

const options = [
  { key: 'a', label: 'Apple' },
  { key: 'b', label: 'b' },
]
const secretRequest = { name: 'n', provider: 'p', envVarName: 'KEY', reason: 'r' }

test('each answer mode requires its own fields', () => {
  const refused = (answerMode: 'free_text' | 'single_select' | 'multi_select' | 'secret_input', parts: object = {}) =>
    askRefusalOf({ answerMode, options: null, secretRequest: null, ...parts })?.code ?? null
  expect(refused('free_text')).toBeNull()
  expect(refused('free_text', { options: [] })).toBeNull()
  expect(refused('free_text', { options })).toBe('options_not_allowed')
  expect(refused('free_text', { secretRequest })).toBe('secret_request_not_allowed')
  for (const mode of ['single_select', 'multi_select'] as const) {
    expect(refused(mode, { options })).toBeNull()
    expect(refused(mode)).toBe('options_required')
    expect(refused(mode, { options, secretRequest })).toBe('secret_request_not_allowed')
  }
  expect(refused('secret_input', { secretRequest })).toBeNull()
  expect(refused('secret_input')).toBe('secret_request_required')
  expect(refused('secret_input', { secretRequest, options })).toBe('options_not_allowed')
})

test('an answer that does not fit the mode is refused', () => {
  const judge = (
    answerMode: Parameters<typeof judgeAnswer>[0]['answerMode'],
    text: string | null,
    selected: string[] | null,
  ) => judgeAnswer({ answerMode, options }, { text, selected })
  expect(judge('free_text', ' x ', null)).toEqual({ answer: { text: ' x ', selected: null } })
  expect(judge('free_text', ' ', [])).toMatchObject({ refusal: 'invalid_answer' })
  expect(judge('free_text', 'x', ['a'])).toMatchObject({ refusal: 'answer_mode_mismatch' })
  expect(judge('single_select', null, ['a'])).toEqual({ answer: { text: null, selected: ['a'] } })
  expect(judge('single_select', '', ['a', 'b'])).toMatchObject({ refusal: 'answer_mode_mismatch' })
  expect(judge('single_select', 'a', null)).toMatchObject({ refusal: 'answer_mode_mismatch' })
  expect(judge('multi_select', 'note', ['b', 'a', 'b'])).toEqual({ answer: { text: 'note', selected: ['b', 'a'] } })
  for (const nothing of [[], null])
    expect(judge('multi_select', 'note', nothing)).toMatchObject({ refusal: 'answer_mode_mismatch' })
  expect(judge('multi_select', null, ['c'])).toMatchObject({ refusal: 'invalid_option_key' })
  expect(judge('secret_input', 'x', null)).toMatchObject({ refusal: 'question_needs_secret' })
})

test('an option is chosen by its key or by its label, where only one has it', () => {
  const alike = [...options, { key: 'Apple', label: 'Pear' }, { key: 'd', label: 'Plum' }, { key: 'e', label: 'plum' }]
  const judge = (from: typeof options, ...selected: string[]) =>
    judgeAnswer({ answerMode: 'multi_select', options: from }, { text: null, selected })
  expect(judge(options, 'Apple', 'b')).toEqual({ answer: { text: null, selected: ['a', 'b'] } })
  expect(judge(options, ' aPPLE ', 'a')).toEqual({ answer: { text: null, selected: ['a'] } })
  // A key counts before the label of another option, and a label of two is none.
  expect(judge(alike, 'Apple')).toEqual({ answer: { text: null, selected: ['Apple'] } })
  expect(judge(alike, 'apple')).toEqual({ answer: { text: null, selected: ['a'] } })
  expect(judge(alike, 'Plum')).toMatchObject({ refusal: 'invalid_option_key' })
  expect(judge(options, 'B')).toEqual({ answer: { text: null, selected: ['b'] } })
  expect(judge(options, '')).toMatchObject({ refusal: 'invalid_option_key' })
})

test('an answer by the system says so, except for a secret', () => {
  expect(systemAnswer({ answerMode: 'free_text' }, 'run_ended')).toEqual({ text: '[system:run_ended]', selected: null })
  expect(systemAnswer({ answerMode: 'secret_input' }, 'run_ended')).toBeNull()
})

const ada = { id: idFrom<ActorRef>('usr_1'), name: 'Ada' }

test('the woken run gets the question and its answer, but for a secret only its variable', () => {
  const question = { id: idFrom<QuestionId>('qst_1'), prompt: 'Which?', options, secretRequest: null }
  const told = answeredPrompt(question, { answer: { text: 'quickly', selected: ['a', 'b'] }, by: ada })
  for (const words of ['qst_1', 'Which?', 'by "Ada" (usr_1):', 'a (Apple), b', 'quickly']) expect(told).toContain(words)
  expect(told).not.toContain('b (')
  // An option of which nothing else is known is its key.
  const picked = answeredPrompt(question, { answer: { text: null, selected: ['b', 'a', 'gone'] }, by: ada })
  expect(picked).toContain('b, a (Apple), gone')
  const secret = answeredPrompt({ ...question, secretRequest }, { answer: null, by: ada })
  expect(secret).toContain('the environment variable KEY')
})

test('an answer that chooses all of very many options looks each of them up once', () => {
  let looks = 0
  const many = Array.from({ length: 1_000 }, (_, n) => ({
    get key() {
      looks++
      return `key ${n}`
    },
    label: 'x',
  }))
  const selected = many.map((_, n) => `key ${n}`)
  const question = { id: idFrom<QuestionId>('qst_1'), prompt: 'Which?', options: many, secretRequest: null }
  expect(answeredPrompt(question, { answer: { text: null, selected }, by: ada })).toContain('key 999 (x)')
  expect(looks).toBeLessThanOrEqual(2 * many.length)
})
