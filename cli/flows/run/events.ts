import type { Flow } from '../../context/context.ts'
import { usageError } from '../../errors/cli-error.ts'
import { fieldAt } from '../../replies/fields.ts'
import { followRun } from '../../http/follow.ts'
import { withRun, sendAndPrint } from '../../http/route-call.ts'

/** `run events`: prints a page of events, or with --follow one line of JSON per event until the run is over. */
export const runEvents: Flow = async (context) => {
  const { out, values, world } = context
  if (values.local['follow'] !== true) return sendAndPrint(context)
  if (values.query['sort'] === 'desc' || values.query['limit'] !== undefined) {
    throw usageError('--follow reads all events, oldest first: it cannot be given with --sort desc or --limit.')
  }
  const after = values.query['after']
  await followRun({
    client: await context.connect(),
    world,
    runId: withRun(context, values.params)['runId']!,
    after: typeof after === 'string' ? after : null,
    signal: new AbortController().signal,
    onEvent: (event) => (out.format === 'json' ? out.jsonLine(event) : out.text(shortLine(event))),
    drained: () => out.drained(),
    onTrouble: (error) => out.message(`svc: ${error.message} Opening the stream again.`),
  })
}

const shortLine = (event: unknown) =>
  [fieldAt(event, 'seq'), fieldAt(event, 'kind'), JSON.stringify(fieldAt(event, 'data'))]
    .map((part) => (typeof part === 'string' ? part : JSON.stringify(part)))
    .join('  ')
