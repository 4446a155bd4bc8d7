import type { CommandContext, Flow } from '../../context/context.ts'
import type { IsolationChoice } from '../../../shared/device/isolation.ts'
import { askDaemon } from '../../device/daemon-control.ts'
import { CliError, usageError } from '../../errors/cli-error.ts'
import { devicePlaces } from '../../machine/paths.ts'
import { callOf, printReply } from '../../http/route-call.ts'
import { connectionIdOf, thisDevice } from '../../device/this-device.ts'

/** `device set`: changes a device, by default this machine's. The isolation of runs is set on this machine only. */
export const deviceSet: Flow = async (context) => {
  const { values, command } = context
  const isolation = values.local['isolation']
  if (isolation !== undefined) {
    await setIsolation(context, isolation)
    if (values.body === undefined) return
  }
  if (values.body === undefined) throw usageError('Say what to set.', `For example: ${command.example}`)
  const reference = values.params['id'] ?? (await thisDevice(context)).publicId
  const client = await context.connect()
  const id = await connectionIdOf(client, reference)
  await printReply(context, (await client.call(callOf(context, { params: { id } }))).body)
}

const isolationChoices: readonly IsolationChoice[] = ['svc', 'off']
const isChoice = (value: unknown): value is IsolationChoice => isolationChoices.some((choice) => choice === value)

async function setIsolation({ env, values, out }: CommandContext, isolation: unknown): Promise<void> {
  if (!isChoice(isolation)) throw usageError(`--isolation takes ${isolationChoices.join(' or ')}.`)
  if (values.params['id'] !== undefined) throw usageError('--isolation is set on the device itself, without --device.')
  // Runs behind the wall cannot reach the daemon anyway. This check tells the agent why, and protects machines without
  // a wall.
  if (env.run !== null || env.runId !== null) {
    throw new CliError('isolation_in_run', 'A run cannot change how runs are isolated.', {
      remediation: 'The owner of the device types it in a terminal of that machine.',
    })
  }
  await out.result(await askDaemon(await devicePlaces(env), { op: 'set_isolation', isolation }), {
    look: 'device isolation',
  })
}
