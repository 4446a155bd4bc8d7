import type { RunEventBody } from '../../../shared/runs/events.ts'
import { errorEvent, inputTooLate } from '../parts/error-event.ts'

export const acpInputTooLate = inputTooLate('the program')

/** A call that the lists cannot judge, since the program does not say enough of it. */
export const unnamed = (name: string): RunEventBody =>
  errorEvent(
    'call_refused',
    `The program says too little of a tool (${name}) to judge it by the lists, which forbid some tools, so it was refused. ` +
      `A rule \`${name}\` in \`allow\` allows all of these.`,
  )

/** The reason of such a refusal, for the model. */
export const tooLittle = 'A call says too little of what it does to be judged by the rules of the agent.'
