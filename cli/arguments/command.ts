import type { CommandFlag, PositionalSpec } from '../../shared/api/command.ts'

/**
 * A command of `svc` as data. Commands of the contract come from `command-table.json` (made by from-contract.ts), the
 * local ones from local-commands.ts. Nothing here needs zod or yargs, which would take longer to load than most calls
 * take.
 */
export interface Command {
  /** All its words: `agent config set`. */
  name: string
  summary: string
  description?: string
  example: string
  positionals: readonly PositionalSpec[]
  flags: readonly CommandFlag[]
  /** null: the command is not one call of the API. */
  route: CommandRoute | null
  /** The look of the record or records that it prints; without one the reply has no body. */
  shows?: string
  /** The key of the list in the reply. */
  list?: string
  /** Prints these fields of the reply as text. */
  print?: { stdout: string; stderr?: string }
  /** On a terminal it asks first. */
  asks?: true
  /** The path to call with the values as `ids` when the variadic positional has several. */
  batchPath?: string
  /** Not shown in help: other programs call it. */
  hidden?: true
}

export interface CommandRoute {
  id: string
  method: string
  /** From the root of the server, with `{names}` of parameters. */
  path: string
  /** False: the server ignores an Idempotency-Key. */
  takesKey: boolean
  /** Codes of this route beside the shared ones. */
  errors: readonly string[]
  /** The allowed callers, in words. */
  callers: string
}

export const jsonFlag: CommandFlag = {
  name: 'json',
  target: null,
  kind: 'string',
  bare: '',
  description: 'Print JSON: all of it, or only these fields (`--json id,status`).',
}

/** Flag of lists that come in pages. */
export const allFlag: CommandFlag = {
  name: 'all',
  target: null,
  kind: 'boolean',
  description: 'Read all pages.',
}

/** Flag of commands that ask. */
export const yesFlag: CommandFlag = {
  name: 'yes',
  target: null,
  kind: 'boolean',
  description: 'Do not ask.',
}

/** Flags that all commands take. */
export const globalFlags: readonly CommandFlag[] = [
  {
    name: 'output',
    target: null,
    kind: 'string',
    aliases: ['o'],
    choices: ['json', 'table', 'tsv'],
    description: 'How the result is printed. Default: a table on a terminal, else (and in a run) JSON.',
  },
  jsonFlag,
  {
    name: 'jq',
    target: null,
    kind: 'string',
    description: 'Print what this jq expression makes of the JSON.',
  },
  {
    name: 'color',
    target: null,
    kind: 'string',
    choices: ['auto', 'always', 'never'],
    description: 'Whether to print colours. Default: on a terminal, unless NO_COLOR is set.',
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
  /** By name: one value, or all values of the variadic positional. */
  positionals: Readonly<Record<string, readonly string[]>>
  /** By the flag's main name. `true` also stands for a flag with a `bare` value that was given without a value. */
  flags: Readonly<Record<string, readonly (string | boolean)[]>>
}
