import type { RunEventBody } from '../../../shared/runs/events.ts'
import { errorEvent, inputTooLate } from '../parts/error-event.ts'
import { asItIs, callEvent, resultEvent } from '../parts/event-pieces.ts'
import { plainText } from '../parts/left-early.ts'
import { skillLeftOutEvent } from '../parts/skills.ts'
import { configWarning, warning } from './wire.ts'

/** Says that it took no folders of skills. */
export const noSkills = skillLeftOutEvent({
  path: 'all folders',
  why: 'this codex takes none by its protocol; update codex',
})

export const codexInputTooLate = inputTooLate('codex')

const maxWarnings = 100
/** codex says these at the start of each run: of a model that its list does not have, and of what svc has it do. */
const knownWarning = /^Model metadata for .* not found|^Project-local config, hooks, and exec policies are disabled/
/** Its log line for a tool that it does not have; its protocol tells nothing of such a call. */
const unknownCall = /\bcodex_core::tools::router: error=unsupported call: (.{1,200})/
/** Its log line for each call that was refused, which its protocol tells, too. */
const refusedCall = /\bcodex_core::tools::router: error=.*\brejected by user\b/

/** What codex tells beside its items: warnings, and calls that only its log has. */
export class Notes {
  readonly #told = new Set<string>()
  #calls = 0

  /** null: not a warning that is understood. */
  warning(params: unknown): RunEventBody[] | null {
    const parsed = warning.safeParse(params)
    const ofSettings = configWarning.safeParse(params)
    const message = parsed.data?.message ?? ofSettings.data?.summary
    if (message === undefined) return null
    const details = ofSettings.data?.details
    const text = details == null ? message : `${message} (${details})`
    if (knownWarning.test(message) || this.#told.has(text) || this.#told.size >= maxWarnings) return []
    this.#told.add(text)
    return [errorEvent('warning', text)]
  }

  /** null: a line of its log that says nothing else than itself. */
  logLine(line: string): RunEventBody[] | null {
    const text = plainText(line)
    if (refusedCall.test(text)) return []
    const name = unknownCall.exec(text)?.[1]?.trim()
    if (name === undefined || name === '') return null
    const toolCallId = `unknown-tool-${++this.#calls}`
    const output = `codex has no tool ${name}.`
    return [
      callEvent({ toolCallId }, { name, input: {} }, asItIs),
      resultEvent({ toolCallId, isError: true, output }, asItIs),
    ]
  }
}
