import { usageError } from '../errors/cli-error.ts'

/**
 * A value as one segment of a path. One that is empty, or that a URL takes for a step (`.`, `..`), would call another route:
 * `svc agent get "$AGENT"` with an unset variable the list of all agents.
 */
export function pathSegment(value: string): string {
  if (value === '') throw usageError('A reference is empty: it names nothing.', 'Is a variable unset?')
  if (value === '.' || value === '..') throw usageError(`\`${value}\` names nothing.`)
  return encodeURIComponent(value)
}
