import { usageError } from '../errors/cli-error.ts'

/**
 * Encodes a value as one segment of a path. An empty value, `.` and `..` are refused, since they would call another
 * route: `svc agent get "$AGENT"` with an unset variable would list all agents.
 */
export function pathSegment(value: string): string {
  if (value === '') throw usageError('A reference is empty: it names nothing.', 'Is a variable unset?')
  if (value === '.' || value === '..') throw usageError(`\`${value}\` names nothing.`)
  return encodeURIComponent(value)
}
