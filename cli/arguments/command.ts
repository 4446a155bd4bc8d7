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
  /** Prints these fields of the reply as text. */
  print?: { stdout: string; stderr?: string }
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
  /** By name: one value, or all values of the variadic positional. */
  positionals: Readonly<Record<string, readonly string[]>>
  /** By the flag's main name. `true` also stands for a flag with a `bare` value that was given without a value. */
  flags: Readonly<Record<string, readonly (string | boolean)[]>>
}
