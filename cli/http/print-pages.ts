import type { ApiCall } from '../calls/api-call.ts'
import type { Client } from '../calls/client.ts'
import type { CommandContext } from '../context/context.ts'
import { usageError } from '../errors/cli-error.ts'
import { pagesOf } from './pages.ts'
import type { Shape } from '../output/shape.ts'

/** Reads the pages of the command's list, all of them or up to `--limit` rows, and prints them as one list. */
export async function printPages(
  context: CommandContext,
  client: Client,
  { call, perPage, shape }: { call: ApiCall; perPage: number; shape: Shape },
): Promise<void> {
  const { values, out } = context
  const { limit } = values.query
  const isAll = values.local['all'] === true
  if (isAll && context.givenFlags.includes('limit'))
    throw usageError('--all reads all rows: it cannot be given with --limit.')
  if (values.query['endingBefore'] !== undefined)
    throw usageError('--ending-before reads upwards: several pages are read downwards only.')
  const most = isAll || typeof limit !== 'number' ? Infinity : limit
  await out.pages(pagesOf(client, call, { most, perPage }), shape)
}
