import type { CommandContext, Flow } from '../../context.ts'
import { usageError } from '../../errors/cli-error.ts'
import { callOf, printReply } from '../../http/route-call.ts'
import { localText } from '../../arguments/values.ts'

/** `task assign`: to an agent, or with --unassign to nobody. */
export const taskAssign: Flow = (context) =>
  send(context, { assignee: either(context, { value: 'assignee', nothing: 'unassign' }) })

/** `task move`: below another task, or with --to-root below none. */
export const taskMove: Flow = (context) =>
  send(context, { parentTaskId: either(context, { value: 'parent', nothing: 'to-root' }) })

/** The text of one flag, or null for the other; exactly one of them is given. */
function either({ values, command }: CommandContext, flags: { value: string; nothing: string }): string | null {
  const text = localText(values, flags.value)
  const isNothing = values.local[flags.nothing] === true
  if ((text !== null) === isNothing)
    throw usageError(
      `\`svc ${command.name}\` needs --${flags.value} or --${flags.nothing}, one of them.`,
      `For example: ${command.example}`,
    )
  return text
}

async function send(context: CommandContext, body: Record<string, unknown>): Promise<number> {
  const client = await context.connect()
  await printReply(context, (await client.call(callOf(context, { body }))).body)
  return 0
}
