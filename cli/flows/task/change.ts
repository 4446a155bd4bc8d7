import type { CommandContext, Flow } from '../../context/context.ts'
import { usageError } from '../../errors/cli-error.ts'
import { sendAndPrint } from '../../http/route-call.ts'
import { localText } from '../../arguments/values.ts'

/** `task assign`: assigns to an agent, or with --unassign to nobody. */
export const taskAssign: Flow = (context) =>
  sendAndPrint(context, { body: { assignee: either(context, { value: 'assignee', nothing: 'unassign' }) } })

/** `task move`: moves below another task, or with --to-root below none. */
export const taskMove: Flow = (context) =>
  sendAndPrint(context, { body: { parentTaskId: either(context, { value: 'parent', nothing: 'to-root' }) } })

/** The text of one flag, or null for the other; exactly one of them must be given. */
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
