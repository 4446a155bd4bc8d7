import type { Flow } from '../../context/context.ts'
import { CliError } from '../../errors/cli-error.ts'
import { textAt } from '../../replies/fields.ts'
import { callOf, fillPath, printReply, withRun } from '../../http/route-call.ts'

/**
 * `run cancel`: refuses to cancel a run that waits for a person unless --force is given, since the person's answer
 * would reach nobody.
 */
export const runCancel: Flow = async (context) => {
  const { values } = context
  const client = await context.connect()
  if (values.local['force'] !== true) {
    const path = fillPath('/api/v1/runs/{runId}', withRun(context, values.params))
    const { body: run } = await client.call({ method: 'GET', path })
    const kind = textAt(run, 'waitingOn', 'kind')
    if (kind !== null) {
      const label = textAt(run, 'waitingOn', 'label') ?? textAt(run, 'waitingOn', 'id') ?? ''
      throw new CliError('run_waits_for_person', `The run waits for a person (${kind}): ${label}`, {
        remediation: 'Answer it, or cancel the run anyway with --force.',
        details: { runId: textAt(run, 'id'), waitingOn: (run as { waitingOn: unknown }).waitingOn },
      })
    }
  }
  const { body: run } = await client.call(callOf(context))
  const [id, status] = [textAt(run, 'id'), textAt(run, 'status')]
  const isLive = status === 'running' || status === 'queued'
  // A device ends it in a while; to a person it would look as if nothing had been done. Programs get the word of the API.
  const isForPerson = context.out.isTerminal && context.out.format !== 'json'
  const shown = isLive && isForPerson ? { ...(run as object), status: 'being_cancelled' } : run
  await printReply(context, shown)
  if (isLive)
    context.out.message(
      `svc: ${id} is being cancelled: its device has its agent stop, and then ends what goes on. \`svc run watch ${id}\` shows its end.`,
    )
}
