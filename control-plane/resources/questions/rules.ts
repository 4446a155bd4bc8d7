import type { QuestionId } from '../../../shared/lib/ids.ts'
import type { ErrorCode } from '../../../shared/api/errors.ts'
import type { AnswerMode, QuestionAnswer, SecretRequest } from '../../../shared/api/approval-words.ts'
import { inQuotes, nameOf, onOneLine, quoted, quotedLines, type Speaker } from '../../trust/quote.ts'
import type { QuestionRow } from './store.ts'

// Decisions about questions.

/** The reason why a question may not be asked like this; null: it may. */
export function askRefusalOf(ask: {
  answerMode: AnswerMode
  options: readonly unknown[] | null
  secretRequest: SecretRequest | null
}): { code: ErrorCode; param: string } | null {
  const isSelect = ask.answerMode === 'single_select' || ask.answerMode === 'multi_select'
  const isSecret = ask.answerMode === 'secret_input'
  const hasOptions = ask.options !== null && ask.options.length > 0
  if (isSelect && !hasOptions) return { code: 'options_required', param: 'options' }
  if (!isSelect && hasOptions) return { code: 'options_not_allowed', param: 'options' }
  if (isSecret && ask.secretRequest === null) return { code: 'secret_request_required', param: 'secretRequest' }
  if (!isSecret && ask.secretRequest !== null) return { code: 'secret_request_not_allowed', param: 'secretRequest' }
  return null
}

export type Judged = { answer: QuestionAnswer } | { refusal: ErrorCode; param: string }

/** The answer to store, or why it does not fit the question's mode. */
export function judgeAnswer(
  question: Pick<QuestionRow, 'answerMode' | 'options'>,
  given: { text: string | null; selected: readonly string[] | null },
): Judged {
  const text = given.text !== null && given.text.trim() !== '' ? given.text : null
  const selected = given.selected ?? []
  if (question.answerMode === 'free_text') {
    if (selected.length > 0) return { refusal: 'answer_mode_mismatch', param: 'answer.selected' }
    return text === null ? { refusal: 'invalid_answer', param: 'answer.text' } : { answer: { text, selected: null } }
  }
  if (question.answerMode === 'secret_input') return { refusal: 'question_needs_secret', param: 'answer' }
  const isRightCount = question.answerMode === 'single_select' ? selected.length === 1 : selected.length > 0
  if (!isRightCount) return { refusal: 'answer_mode_mismatch', param: 'answer.selected' }
  const keyOf = keysOf(question.options ?? [])
  const keys = selected.flatMap((said) => keyOf(said) ?? [])
  if (keys.length < selected.length) return { refusal: 'invalid_option_key', param: 'answer.selected' }
  return { answer: { text, selected: [...new Set(keys)] } }
}

/** Finds the key that is meant: a key as it is, else the label of one option only, in capitals or not. */
function keysOf(options: readonly { key: string; label: string }[]): (said: string) => string | null {
  const keys = new Set(options.map(({ key }) => key))
  const byLabel = new Map<string, string | null>()
  for (const { key, label } of options) {
    const word = plainLabel(label)
    byLabel.set(word, byLabel.has(word) ? null : key)
  }
  return (said) => (keys.has(said) ? said : (byLabel.get(plainLabel(said)) ?? null))
}

const plainLabel = (label: string): string => label.trim().toLowerCase()

/** The key of the wake that an answer to the question asks for. */
export const questionWakeKey = (id: QuestionId): string => `question:${id}`

export type SystemReason = 'run_ended' | 'stop_failed' | 'wait_timeout' | 'workflow_ended' | 'agent_deleted'

/** The answer of a question that the system closed; a `secret_input` has none. */
export const systemAnswer = (question: Pick<QuestionRow, 'answerMode'>, reason: SystemReason): QuestionAnswer | null =>
  question.answerMode === 'secret_input' ? null : { text: `[system:${reason}]`, selected: null }

/** The prompt of the woken run. */
export function answeredPrompt(
  question: Pick<QuestionRow, 'id' | 'prompt' | 'options' | 'secretRequest'>,
  { answer, by }: { answer: QuestionAnswer | null; by: Speaker },
): string {
  const asked = `You asked a person (${question.id}):\n\n${quotedLines(question.prompt)}`
  if (answer === null) {
    const { name = '', envVarName = '' } = question.secretRequest ?? {}
    return `${asked}\n\n${nameOf(by)} gave the secret ${inQuotes(name)}. It is in the environment variable ${envVarName} of this run; do not print it.`
  }
  const labelOf = new Map((question.options ?? []).map(({ key, label }) => [key, label]))
  const labels = (answer.selected ?? []).map((key) => {
    const label = labelOf.get(key)
    return onOneLine(label === undefined || label === key ? key : `${key} (${label})`)
  })
  const chosen = labels.length === 0 ? '' : `Chosen: ${labels.join(', ')}`
  const text = [chosen, answer.text ?? ''].filter((part) => part !== '').join('\n\n')
  return `${asked}\n\n${quoted({ as: 'request', what: `answer to ${question.id}`, by, text })}`
}
