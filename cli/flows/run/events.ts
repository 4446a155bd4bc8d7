import type { Flow } from '../../context/context.ts'
import { usageError } from '../../errors/cli-error.ts'
import { followRun } from '../../http/follow.ts'
import { withRun, sendAndPrint } from '../../http/route-call.ts'

/** `run events`: prints a page of events, or with --follow each event as it comes until the run is over: one line of JSON, or as `run watch` shows it. */
export const runEvents: Flow = async (context) => {
  const { out, values, world } = context
  if (values.local['follow'] !== true) return sendAndPrint(context)
  if (values.query['sort'] === 'desc' || values.query['limit'] !== undefined) {
    throw usageError('--follow reads all events, oldest first: it cannot be given with --sort desc or --limit.')
  }
  const given = values.query['after']
  const after = typeof given === 'string' ? given : null
  const client = await context.connect()
  const runId = withRun(context, values.params)['runId']!
  if (out.format !== 'json') {
    const { watchRun } = await import('./watch.ts')
    await watchRun(context, { client, runId, after })
    return
  }
  await followRun({
    client,
    world,
    runId,
    after,
    signal: new AbortController().signal,
    onEvent: (event) => out.jsonLine(event),
    drained: () => out.drained(),
    onTrouble: (error) => out.message(`svc: ${error.message} Opening the stream again.`),
  })
}
