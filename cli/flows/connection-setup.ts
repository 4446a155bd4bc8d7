import { mcpServerIntegration } from '../../shared/api/connection-fields.ts'
import { localText } from '../arguments/values.ts'
import type { CommandContext, Flow } from '../context/context.ts'
import { usageError } from '../errors/cli-error.ts'
import { sendAndPrint } from '../http/route-call.ts'
import { readFileOrInput } from '../machine/input.ts'

/** `mcp sign-in`: a connection to the server that is named. */
export const mcpSignIn: Flow = async (context) => {
  const fields = await keyFields(context)
  const integrationId = mcpServerIntegration + (context.positionals['server']?.[0] ?? '')
  const body = { integrationId, ownerType: 'company', ...(fields !== null && { apiKeyFields: fields }) }
  return sendAndPrint(context, { body })
}

/** `connection create`, `connection reauthorize`: the fields of a key come from the command line, a file or standard input. */
export const connectionSetup: Flow = async (context) => {
  const fields = await keyFields(context)
  return sendAndPrint(context, fields === null ? {} : { body: { apiKeyFields: fields } })
}

async function keyFields(context: CommandContext): Promise<unknown> {
  const text = localText(context.values, 'api-key-fields')
  if (text === null) return null
  const json = text.startsWith('@') ? (await readFileOrInput(text.slice(1), context)).toString('utf8') : text
  try {
    return JSON.parse(json) as unknown
  } catch {
    // The text of the error would quote the key.
    throw usageError('--api-key-fields is not JSON.', `For example: '{"apiKey":"..."}', or @file that holds it.`)
  }
}
