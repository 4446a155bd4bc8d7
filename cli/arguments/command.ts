/**
 * A command of `svc` as data: those of the contract come from `command-table.json` (made by from-contract.ts), the local
 * ones from local-commands.ts. Nothing here needs zod or yargs, which would cost more time than most calls.
 */
export interface Command {
  /** All its words: `agent config set`. */
  name: string
  summary: string
  description?: string
  example: string
  positionals: readonly CommandPositional[]
  flags: readonly CommandFlag[]
  /** null: the command is not one call of the API. */
  route: CommandRoute | null
  /** Prints these fields of the reply as text. */
  print?: { stdout: string; stderr?: string }
  /** With several values of the variadic positional, this path is called with them as `ids`. */
  batchPath?: string
  /** Not shown in help: other programs call it. */
  hidden?: true
}

export interface CommandRoute {
  id: string
  method: string
  /** From the root of the server, with `{names}` of parameters. */
  path: string
  /** False: an Idempotency-Key would be ignored. */
  takesKey: boolean
  /** Codes of this route beside the shared ones. */
  errors: readonly string[]
  /** Who may call it, in words. */
  callers: string
}

export interface CommandPositional {
  name: string
  /** null: the command's own flow reads it. */
  target: string | null
  /** Used when it is left out. Without one, and not `isOptional`, it is required. */
  default?: string
  isOptional?: boolean
  variadic?: boolean
  nullWord?: string
  description?: string
}

export type FlagKind = 'string' | 'number' | 'boolean' | 'json' | 'file'

export interface CommandFlag {
  name: string
  /** A dotted path that begins with `params`, `query` or `body`; null: the command's own flow reads it. */
  target: string | null
  kind: FlagKind
  description: string
  repeatable?: boolean
  required?: boolean
  default?: unknown
  hidden?: boolean
  dropped?: boolean
  aliases?: readonly string[]
  choices?: readonly string[]
  nullWord?: string
  /** What is taken when it is left out. */
  fallback?: 'this_device' | 'own_workspace'
  /** The value when the flag is given without one. */
  bare?: unknown
}

/** Flags that all commands take. */
export const globalFlags: readonly CommandFlag[] = [
  {
    name: 'output',
    target: null,
    kind: 'string',
    choices: ['json', 'table'],
    description: 'How the result is printed. Default: a table on a terminal, else (and in a run) JSON.',
  },
  {
    name: 'workspace',
    target: null,
    kind: 'string',
    description: "UUID of the workspace to work in. Default: the login's.",
  },
]

/** The command line as text, before its values are read. */
export interface ParsedArguments {
  /** By name; one value each, or all values of the variadic one. */
  positionals: Readonly<Record<string, readonly string[]>>
  /** By the flag's own name. `true` also for a flag with a `bare` value that was given without one. */
  flags: Readonly<Record<string, readonly (string | boolean)[]>>
}
