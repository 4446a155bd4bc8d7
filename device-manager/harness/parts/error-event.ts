import type { RunEventBody } from '../../../shared/runs/events.ts'

/** An error that the run records, and that is not tried again. */
export const errorEvent = (kind: string, message: string): RunEventBody => ({
  kind: 'error',
  data: { class: kind, message, willRetry: false },
})

export const inputTooLate = (program: string): RunEventBody =>
  errorEvent('input_too_late', `The text came after ${program} had ended its turn and was not delivered.`)

/** A request to the model failed. `willRetry`: the harness asks again by itself. */
export const failedRequestEvent = ({
  httpStatus,
  ...data
}: {
  class: string
  message: string
  httpStatus?: number | null | undefined
  willRetry: boolean
}): RunEventBody => ({ kind: 'error', data: { ...data, ...(httpStatus && { httpStatus }) } })
