import type { Flow } from '../../context.ts'
import { usageError } from '../../errors/cli-error.ts'
import { fieldAt } from '../../replies/fields.ts'
import { followRun } from '../../http/follow.ts'
import { callOf, printReply, withRun } from '../../http/route-call.ts'

/** `run events`: a page of events, or with --follow one line of JSON per event until the run is over. */
export const runEvents: Flow = async (context) => {
  const { out, values, world } = context
  const client = await context.connect()
  if (values.local['follow'] !== true) {
    await printReply(context, (await client.call(callOf(context))).body)
    return 0
  }
  if (values.query['sort'] === 'desc' || values.query['limit'] !== undefined) {
    throw usageError('--follow reads all events, oldest first: it cannot be given with --sort desc or --limit.')
  }
  const after = values.query['after']
  await followRun({
    client,
    world,
    runId: withRun(context, values.params)['runId']!,
    after: typeof after === 'string' ? after : null,
    signal: new AbortController().signal,
    onEvent: (event) => (out.format === 'json' ? out.jsonLine(event) : out.text(shortLine(event))),
    drained: () => out.drained(),
    onTrouble: (error) => out.message(`svc: ${error.message} Opening the stream again.`),
  })
  return 0
}

const shortLine = (event: unknown) =>
  [fieldAt(event, 'seq'), fieldAt(event, 'kind'), JSON.stringify(fieldAt(event, 'data'))].map(String).join('  ')
