import type { ReferenceKind } from '../../shared/api/references.ts'
import type { Command } from './command.ts'

/** The ids of things that the server knows by their ids alone, and svc by their names, too. */
const idForms: Partial<Record<ReferenceKind, RegExp>> = {
  automation: /^aut_[0-9A-Za-z]{16}$/,
  device: /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i,
  file: /^file_[0-9A-Za-z]{16}$/,
  secret: /^sec_[0-9A-Za-z]{16}$/,
}

export const isNamed = (kind: ReferenceKind): boolean => Object.hasOwn(idForms, kind)

/** What a line gives to its call. */
interface Given {
  params: Record<string, string>
  query: Record<string, unknown>
  body: Record<string, unknown> | undefined
}

/** A value that is to be looked up by its name. */
export interface NamedValue {
  kind: ReferenceKind
  name: string
  /** How the command line spells its place: `<file>` or `--device`. */
  spelling: string
  target: string
}

/** The values of the line that are names and no ids. What looks like an id is one. */
export function namedValues(command: Command, values: Given): NamedValue[] {
  const places = [
    ...command.positionals.map(({ name, target, refers }) => ({ spelling: `<${name}>`, target, refers })),
    ...command.flags.map(({ name, target, refers }) => ({ spelling: `--${name}`, target, refers })),
  ]
  return places.flatMap(({ spelling, target, refers }) => {
    const form = refers === undefined ? undefined : idForms[refers]
    if (form === undefined || target === null) return []
    const name = valueAt(values, target)
    // Where a route takes the durable id of a device, that is no name.
    if (refers === 'device' && target !== 'params.id' && /^dvc_[0-9A-Za-z]{16}$/.test(String(name))) return []
    // A reference that is empty is refused with all others.
    return typeof name === 'string' && name !== '' && !form.test(name)
      ? [{ kind: refers!, name, spelling, target }]
      : []
  })
}

/** The value that the line gives for a target. */
export function valueAt(values: Given, target: string): unknown {
  let at: unknown = values
  for (const key of target.split('.'))
    at =
      typeof at === 'object' && at !== null && Object.hasOwn(at, key) ? (at as Record<string, unknown>)[key] : undefined
  return at
}
