import type { Flow } from '../../context/context.ts'
import { fieldAt, textAt } from '../../replies/fields.ts'
import { rowsOf } from '../../http/pages.ts'
import { aboutEnding } from '../../output/run-ending.ts'
import { callOf, fillPath, withRun } from '../../http/route-call.ts'
import { createTranscript } from '../../output/transcript.ts'

/** `run read`: prints the agent's final answer as text, or with --full the whole run in a form that people can read. */
export const runRead: Flow = async (context) => {
  const { out, values } = context
  const client = await context.connect()
  if (values.local['full'] === true) {
    const path = fillPath('/api/v1/runs/{runId}/events', withRun(context, values.params))
    const transcript = createTranscript()
    for await (const event of rowsOf(client, { method: 'GET', path, query: { limit: 500 } })) {
      if (out.isJsonWanted) out.jsonLine(event)
      else for (const line of transcript.lines(event)) out.text(line)
      await out.drained()
    }
    if (!out.isJsonWanted) for (const line of transcript.end()) out.text(line)
    return
  }
  const { body } = await client.call(callOf(context, { query: { 'expand[]': 'transcriptRead' } }))
  const answer = textAt(body, 'transcriptRead', 'finalAnswer')
  if (out.isJsonWanted) await out.result(fieldAt(body, 'transcriptRead') ?? null)
  else if (answer !== null) out.text(answer)
  const about = aboutEnding(body)
  if (about !== null) out.message(`svc: ${about}`)
  else if (answer === null) out.message('svc: the run has given no answer.')
}
