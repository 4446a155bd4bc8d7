import type { CommandContext, Flow } from '../context/context.ts'
import { usageError } from '../errors/cli-error.ts'
import { fieldAt, listAt } from '../replies/fields.ts'
import type { ApiCall, ApiReply } from '../calls/api-call.ts'
import type { Client } from '../calls/client.ts'
import { failureOf } from '../http/client.ts'
import { addField, type FieldTree } from '../arguments/field-tree.ts'
import { isUpwards, pagesOf } from '../http/pages.ts'
import { readFileOrInput } from '../machine/input.ts'
import { localText, localTexts } from '../arguments/values.ts'

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** `api`: calls any route with the caller's token and prints the answer as it came. */
export const api: Flow = async (context) => {
  const { values, out } = context
  const call = await callFrom(context)
  const client = await context.connect()
  const isSilent = values.local['silent'] === true
  if (values.local['paginate'] === true) {
    if (call.method !== 'GET') throw usageError('--paginate is for GET.')
    const all = await allPages(client, call)
    if (!isSilent) await out.result(all)
    return
  }
  const reply = await client.send(call)
  if (values.local['include'] === true) out.message(headOf(reply))
  if (reply.status >= 400) throw failureOf(reply)
  if (isSilent) return
  if (reply.body !== undefined) await out.result(reply.body)
  else if (reply.text !== '') out.exact(reply.text)
}

async function callFrom(context: CommandContext): Promise<ApiCall> {
  const { values } = context
  const { method, path } = methodAndPath(context)
  const input = localText(values, 'input')
  const fields = await fieldsFrom(context)
  const headers = headersFrom(localTexts(values, 'header'))
  const isRead = method === 'GET'
  if (input !== null && isRead) throw usageError('A GET has no body: --input cannot be given with it.')
  const bytes = input === null ? undefined : await readFileOrInput(input, context)
  // With a body from a file the fields go into the query, like those of a GET.
  const isQuery = isRead || bytes !== undefined
  return {
    method,
    path,
    headers,
    isKeyed: !isRead,
    mayBeText: true,
    ...(isQuery ? { query: flatten(fields) } : {}),
    ...(bytes === undefined ? {} : { bytes }),
    ...(!isQuery && Object.keys(fields).length > 0 ? { body: fields } : {}),
  }
}

function methodAndPath({ values }: CommandContext): { method: string; path: string } {
  const first = localText(values, 'method-or-path') ?? ''
  const second = localText(values, 'path')
  const flag = localText(values, 'method')
  const hasBody = ['input', 'field', 'raw-field'].some((name) => values.local[name] !== undefined)
  if (flag !== null && second !== null)
    throw usageError('--method and a method before the path cannot be given together.')
  const method = flag?.toUpperCase() ?? (second === null ? (hasBody ? 'POST' : 'GET') : first.toUpperCase())
  const path = second ?? first
  if (!methods.includes(method)) throw usageError(`\`${flag ?? first}\` is not one of ${methods.join(', ')}.`)
  if (/^[a-z][a-z0-9+.-]*:/i.test(path)) throw usageError('Give the path alone: the server is that of your login.')
  const rooted = path.startsWith('/') ? path : `/${path}`
  // As gh calls whoever is signed in.
  if (rooted === '/user') return { method, path: '/api/auth/me' }
  return { method, path: rooted.startsWith('/api/') ? rooted : `/api/v1${rooted}` }
}

async function fieldsFrom(context: CommandContext): Promise<FieldTree> {
  const tree: FieldTree = {}
  for (const text of localTexts(context.values, 'field')) {
    const [key, value] = split(text)
    addField(tree, key, await typed(context, value))
  }
  for (const text of localTexts(context.values, 'raw-field')) addField(tree, ...split(text))
  return tree
}

function split(text: string): [string, string] {
  const at = text.indexOf('=')
  if (at < 1) throw usageError(`\`${text}\` is not key=value.`)
  return [text.slice(0, at), text.slice(at + 1)]
}

async function typed(context: CommandContext, value: string): Promise<unknown> {
  if (value === 'true' || value === 'false') return value === 'true'
  if (value === 'null') return null
  if (/^-?(0|[1-9]\d{0,14})(\.\d{1,15})?$/.test(value)) return Number(value)
  return value.startsWith('@') ? (await readFileOrInput(value.slice(1), context)).toString('utf8') : value
}

function headersFrom(lines: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    lines.map((line) => {
      const match = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):\s*(.*)$/.exec(line)
      if (match === null) throw usageError(`\`${line}\` is not a header. For example: --header 'Svc-Version: 2026-03'`)
      return [match[1]!, match[2]!]
    }),
  )
}

/** `a[b]=1` in a query stays `a[b]=1`. */
function flatten(tree: FieldTree, prefix = ''): Record<string, unknown> {
  const flat: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(tree)) {
    const name = prefix === '' ? key : `${prefix}[${key}]`
    const isTree = typeof value === 'object' && value !== null && !Array.isArray(value)
    if (isTree) Object.assign(flat, flatten(value as FieldTree, name))
    else flat[name] = value
  }
  return flat
}

/** Joins the pages into one list: `data` of all, and the other fields of the last page. */
async function allPages(client: Client, call: ApiCall): Promise<unknown> {
  const rows: unknown[] = []
  let last: unknown
  for await (const page of pagesOf(client, call)) {
    if (!Array.isArray(fieldAt(page, 'data'))) return page
    const data = listAt(page, 'data')
    if (isUpwards(call)) rows.unshift(...data)
    else for (const row of data) rows.push(row)
    last = page
  }
  // Some lists say how many rows stand in an answer.
  const counted = fieldAt(last, 'returnedCount') === undefined ? {} : { returnedCount: rows.length }
  return { ...(last as object), ...counted, data: rows }
}

function headOf(reply: ApiReply): string {
  const lines = Object.entries(reply.headers).map(([name, value]) => `${name}: ${[value].flat().join(', ')}`)
  return [`HTTP ${reply.status}`, ...lines, ''].join('\n')
}
