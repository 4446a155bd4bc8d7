import type { RunEventBody } from '../../../shared/runs/events.ts'

/** An error that the run records, and that is not tried again. */
export const errorEvent = (kind: string, message: string): RunEventBody => ({
  kind: 'error',
  data: { class: kind, message, willRetry: false },
})

export const inputTooLate = (program: string): RunEventBody =>
  errorEvent('input_too_late', `The text came after ${program} had ended its turn and was not delivered.`)
