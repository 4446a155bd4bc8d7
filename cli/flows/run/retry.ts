import { askYesOrNo } from '../../machine/ask.ts'
import type { CommandContext, Flow } from '../../context/context.ts'
import { CliError } from '../../errors/cli-error.ts'
import { textAt } from '../../replies/fields.ts'
import { isEnded } from '../../http/follow.ts'
import type { Client } from '../../calls/client.ts'
import { callOf, fillPath, printReply, withRun } from '../../http/route-call.ts'

/**
 * `run retry`: a second retry beside one that is still running would do the same work twice, so the user must confirm
 * it.
 */
export const runRetry: Flow = async (context) => {
  const client = await context.connect()
  if (context.values.local['force'] !== true) await askAboutSuccessor(context, client)
  await printReply(context, (await client.call(callOf(context))).body)
}

async function askAboutSuccessor(context: CommandContext, client: Client): Promise<void> {
  const read = async (runId: string) =>
    (await client.call({ method: 'GET', path: fillPath('/api/v1/runs/{runId}', { runId }) })).body
  const run = await read(withRun(context, context.values.params)['runId']!)
  const id = textAt(run, 'successorRunId')
  if (id === null) return
  const status = textAt(await read(id), 'status')
  if (isEnded(status)) return
  const already = `${textAt(run, 'id')} has been retried already: ${id} is ${status}.`
  if (context.isInteractive && (await askYesOrNo(`svc: ${already} Retry it once more?`))) return
  throw new CliError('run_retried_already', already, {
    remediation: `Follow it with \`svc run watch ${id}\`, or retry the run once more with --force.`,
    details: { runId: textAt(run, 'id'), successorRunId: id },
  })
}
