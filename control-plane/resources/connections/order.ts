import type { ConnectionId } from '../../../shared/lib/ids.ts'
import type { ConnectionSort } from '../../../shared/api/connection-fields.ts'

// The orders of lists of connections.

interface Listed {
  id: ConnectionId
  lastUsedAt: number
  createdAt: number
  sortLabel: string
}

const columns = {
  last_used_at: ({ lastUsedAt }: Listed) => lastUsedAt,
  created_at: ({ createdAt }: Listed) => createdAt,
  sort_label: ({ sortLabel }: Listed) => sortLabel,
} as const

/** The columns by which lists are ordered; rows that have the same are ordered by their ids. */
export const sortOrders: Readonly<Record<ConnectionSort, { by: keyof typeof columns; direction: 'asc' | 'desc' }>> = {
  last_used_desc: { by: 'last_used_at', direction: 'desc' },
  last_used_asc: { by: 'last_used_at', direction: 'asc' },
  created_desc: { by: 'created_at', direction: 'desc' },
  created_asc: { by: 'created_at', direction: 'asc' },
  label_asc: { by: 'sort_label', direction: 'asc' },
}

/** The place of a row in a list. */
export const sortKeyOf = (sort: ConnectionSort, row: Listed): readonly [string | number, ConnectionId] => [
  columns[sortOrders[sort].by](row),
  row.id,
]
