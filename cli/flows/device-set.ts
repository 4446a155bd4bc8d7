import type { Flow } from '../context.ts'
import { usageError } from '../errors.ts'
import { callOf, printReply } from '../route-call.ts'
import { connectionIdOf, thisDevice } from '../this-device.ts'

/** `device set`: changes a device, this machine's own when none is named. */
export const deviceSet: Flow = async (context) => {
  const { values, command } = context
  if (values.body === undefined) throw usageError('Say what to set.', `For example: ${command.example}`)
  const reference = values.params['id'] ?? (await thisDevice(context)).publicId
  const client = await context.connect()
  const id = await connectionIdOf(client, reference)
  await printReply(context, (await client.call(callOf(context, { params: { id } }))).body)
  return 0
}
