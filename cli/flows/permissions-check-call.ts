import { jsonFrom, localText } from '../arguments/values.ts'
import type { CommandContext } from '../context/context.ts'
import { usageError } from '../errors/cli-error.ts'
import { readFileOrInput } from '../machine/input.ts'
import type { ToolCall } from '../../shared/permissions/call-inputs.ts'
import { askedCallLimits } from '../../shared/runs/asked-call.ts'

/** The field that `--input` fills, by the name of the tool in lower case. */
const fields: ReadonlyMap<string, string> = new Map(
  Object.entries({
    command: 'bash',
    file_path: 'read write edit multiedit',
    notebook_path: 'notebookread notebookedit',
    path: 'ls grep',
    pattern: 'glob',
    url: 'webfetch',
    query: 'websearch',
    skill: 'skill',
    subagent_type: 'task agent',
  }).flatMap(([field, tools]) => tools.split(' ').map((tool): [string, string] => [tool, field])),
)

/** The input of a tool that is known by one text; null for other tools. */
export function inputFrom(name: string, text: string): Record<string, string> | null {
  const field = fields.get(name.toLowerCase())
  return field === undefined ? null : { [field]: text }
}

const maxInputChars = 1_048_576

/** Reads the call of `agent permissions check` from its flags. */
export async function callFrom(context: CommandContext): Promise<ToolCall> {
  const { values } = context
  const name = localText(values, 'tool') ?? ''
  if (name.trim() === '') throw usageError('--tool is empty: it takes the name of a tool, such as Bash.')
  if (name.length > askedCallLimits.nameChars)
    throw usageError(`--tool is longer than the ${askedCallLimits.nameChars} characters that a tool's name may have.`)
  const text = localText(values, 'input')
  const json: unknown = values.local['input-json']
  if ((text === null) === (json === undefined))
    throw usageError('Give --input or --input-json, one of them.', `For example: ${context.command.example}`)
  if (text === null) return { name, input: objectOf(json, '--input-json') }
  const given = text.startsWith('@') ? (await readFileOrInput(text.slice(1), context)).toString('utf8') : text
  if (given.trim() === '') throw usageError('--input is empty: there is nothing to judge.')
  if (given.length > maxInputChars) throw usageError(`--input is longer than ${maxInputChars} characters.`)
  const input = inputFrom(name, given)
  if (input !== null) return { name, input }
  if (!text.startsWith('@'))
    throw usageError(
      `svc does not know the input of ${name} by one text: give --input-json, or --input @file with JSON.`,
    )
  return { name, input: objectOf(jsonFrom(given, text), text) }
}

function objectOf(value: unknown, where: string): object {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw usageError(`${where} is no JSON object, as the input of a tool is.`)
}
