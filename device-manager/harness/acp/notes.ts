import type { RunEventBody } from '../../../shared/runs/events.ts'

/** Errors that a run records and goes on with. */
const note = (kind: string, message: string): RunEventBody => ({
  kind: 'error',
  data: { class: kind, message, willRetry: false },
})

export const tooLate = note(
  'input_too_late',
  'The text came after the program had ended its turn and was not delivered.',
)

/** A call that the lists cannot judge, since the program does not say enough of it. */
export const unnamed = (name: string): RunEventBody =>
  note(
    'call_refused',
    `The program says too little of a tool (${name}) to judge it by the lists, which forbid some tools, so it was refused. ` +
      `A rule \`${name}\` in \`allow\` allows all of these.`,
  )
