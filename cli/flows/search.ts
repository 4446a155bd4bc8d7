import type { Flow } from '../context/context.ts'
import { usageError } from '../errors/cli-error.ts'
import { nameThingsBy } from '../http/route-call.ts'
import { listAt } from '../replies/fields.ts'

const most = 20
const places = { tasks: 'tasks', wiki: 'wiki/pages', files: 'files' } as const
const kinds = ['tasks', 'wiki', 'files'] as const
const longest = 100

/** `search`: the same words in all that has a search of its own. */
export const search: Flow = async (context) => {
  const { out, values, positionals } = context
  const words = positionals['text'] ?? []
  // gh names a kind first; here nothing is called an issue.
  const isOfTasks = words.length > 1 && words[0] === 'issues'
  const q = (isOfTasks ? words.slice(1) : words).join(' ').trim()
  if (q === '' || q.length > longest) throw usageError(`Give words to look for, ${longest} characters at most.`)
  const limit = Number(values.local['limit'] ?? most)
  if (!Number.isInteger(limit) || limit < 1 || limit > 100) throw usageError('--limit takes a number from 1 to 100.')
  const only = values.local['in'] ?? (isOfTasks ? 'tasks' : undefined)
  const client = await context.connect()
  const found = await Promise.all(
    kinds
      .filter((kind) => only === undefined || kind === only)
      .map(async (kind) => {
        const { body } = await client.call({ method: 'GET', path: `/api/v1/${places[kind]}`, query: { q, limit } })
        return [kind, listAt(body, 'data')] as const
      }),
  )
  const result = Object.fromEntries(found)
  const many = found.reduce((sum, [, rows]) => sum + rows.length, 0)
  const summary = many === 0 ? 'Nothing was found.' : ''
  if (out.format === 'json') await out.result(result)
  else await out.result({ summary, ...result }, { look: 'search', nameThings: nameThingsBy(context) })
}
