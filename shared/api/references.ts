import { z } from 'zod'

/** What a value names, where it names something that has an id. */
export const referenceKinds = [
  'agent',
  'approval',
  'automation',
  'conversation',
  'device',
  'file',
  'learning',
  'plugin',
  'project',
  'question',
  'run',
  'secret',
  'skill',
  'task',
  'webhook',
  'wiki page',
  'workflow',
  'workflow run',
] as const
export type ReferenceKind = (typeof referenceKinds)[number]

export interface Reference {
  kind: ReferenceKind
  /** The forms that the server takes, for people: they follow `It takes`. */
  takes: string
}

/** Schemas of references. What is made of one (`describe`, `optional`) is found here, too. */
export const references = z.registry<Reference>()

/** Adds the schema to `references`. */
export function refersTo<S extends z.ZodType>(schema: S, kind: ReferenceKind, takes: string): S {
  references.add(schema, { kind, takes })
  return schema
}
