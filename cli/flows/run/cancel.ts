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
  await printReply(context, run)
  const [id, status] = [textAt(run, 'id'), textAt(run, 'status')]
  if (status === 'running' || status === 'queued')
    context.out.message(`svc: ${id} is being cancelled. See its end with \`svc run watch ${id}\`.`)
}
