import type { ReferenceKind } from './references.ts'

/** A flag that names a file whose text is sent; `what` says what the file holds. */
export const fileFlag = (target: string, what: string) =>
  ({ target, kind: 'file', description: `File with ${what} (\`-\`: standard input).` }) as const

/**
 * Says how `svc` spells a route. Flags come from the keys of query and body (kebab-case); `flags` overrides or adds, and null
 * leaves one out. Targets are dotted paths that begin with `params`, `query` or `body`.
 */
export interface CommandSpec {
  /** `agent config set` */
  command: string
  positionals?: readonly PositionalSpec[]
  flags?: Readonly<Record<string, FlagOverride | null>>
  example: string
  /** The look of what the command's own flow prints, where that is not the reply. */
  shows?: string
  /** Prints these fields of the reply as text instead of the whole as JSON. */
  print?: { stdout: string; stderr?: string }
  /** The list route that is called with `ids` where the variadic positional has several values. */
  batch?: string
  /** On a terminal it asks first, since nothing brings back what it takes away; `--yes` is the answer. */
  asks?: true
  /** The command makes more than one call; a flow written by hand uses this route. */
  flow?: true
}

export interface PositionalSpec {
  name: string
  /** null: the command's own flow reads it. */
  target: string | null
  /** Needed when no schema describes it. */
  description?: string
  /** The value when it is left out. Without a default it is required. */
  default?: string
  /** May be left out; nothing is sent then. */
  isOptional?: true
  variadic?: boolean
  /** The word for which null is sent. */
  nullWord?: string
  /** What it names. Its schema says so, where it has a target. */
  refers?: ReferenceKind
}

export interface FlagOverride {
  /**
   * A dotted path that begins with `params`, `query` or `body`; default: the key of the query or the body that has the flag's
   * name. null, or no such key: the flag is not sent as it is; the command's own flow reads it, unless it is `dropped`.
   */
  target?: string | null
  kind?: FlagKind
  required?: boolean
  default?: unknown
  hidden?: boolean
  /** Accepted and ignored. */
  dropped?: true
  aliases?: readonly string[]
  repeatable?: boolean
  /** The word for which null is sent. */
  nullWord?: string
  description?: string
  /** The source of the value when the flag is left out: this machine's device, or the workspace of the login. */
  fallback?: Fallback
  /** The value when the flag is given without one. */
  bare?: unknown
}

/** A flag as the command line reads it: the override, completed from the schema of its target. */
export interface CommandFlag extends FlagOverride {
  /** The name without the dashes. */
  name: string
  target: string | null
  kind: FlagKind
  description: string
  choices?: readonly string[]
  /** The most rows that one page has, of a flag for the number of rows. */
  perPage?: number
  /** What its value names. */
  refers?: ReferenceKind
}

type Fallback = 'this_device' | 'own_workspace'

/** `file`: a path (`-` is standard input) whose text is sent. `json`: JSON text. */
export type FlagKind = 'string' | 'number' | 'boolean' | 'json' | 'file'
