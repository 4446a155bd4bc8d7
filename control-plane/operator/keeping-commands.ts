import { statSync } from 'node:fs'
import type { Knex } from 'knex'
import type { World } from '../../shared/lib/world.ts'
import type { OperatorConfig, ServerConfig, ServerFlags } from '../config.ts'
import { dialectOf } from '../db/dialect.ts'
import { findWorkspaceBySlug } from '../resources/workspaces/store.ts'
import type { OperatorArgv } from './commands.ts'
import { OperatorError } from './people.ts'
import { keySourceOf } from '../vault/key-source.ts'
import { createVault } from '../vault/vault.ts'
import { readKeysState, rotateKeys, rotateRunTokens } from './keys.ts'
import { moveFiles } from './files.ts'
import { dueNow } from './retention.ts'
import { readUsage, usageTable } from './usage.ts'

// The operator's commands about what a server keeps over years.

/** What is done beside a server that may run, in as many transactions as it takes. */
export type BesideServer = (
  args: ServerFlags,
  work: (of: { root: Knex; config: OperatorConfig; world: World }) => Promise<object | string>,
  options?: {
    /** A read may take longer than that of a request. */
    readMs?: number
    /** The database must be there: `refuseMissing`. */
    isOnExisting?: boolean
  },
) => Promise<void>

/** What takes longer to count than this is told without its numbers. */
const countMs = 60_000

/**
 * Fails where no file is at the path of a SQLite database. Made anew in a folder that was mistyped, it would say that nothing takes
 * room there, and that nothing needs the old key.
 */
export function refuseMissing(databaseUrl: string): void {
  if (dialectOf(databaseUrl) === 'postgres') return
  // A folder that this user may not enter is told as that.
  if (statSync(databaseUrl, { throwIfNoEntry: false }) !== undefined) return
  throw new OperatorError(`There is no database at ${databaseUrl}. Name its folder with --data-dir.`)
}

export function keepingCommands(
  y: OperatorArgv,
  onAny: BesideServer,
  configOf: (args: ServerFlags) => ServerConfig,
): OperatorArgv {
  const besideServer: BesideServer = (args, work, options) => onAny(args, work, { ...options, isOnExisting: true })
  const files = (of: OperatorArgv) =>
    of.demandCommand(1).command(
      'move',
      'Copy all files from SVC_FILES_OTHER_URL into SVC_FILES_URL, while servers use both',
      (move) => move,
      async (args) => {
        const config = configOf(args)
        await besideServer(args, ({ root, world }) => moveFiles(root, config, world))
      },
    )
  return retentionCommand(usageCommand(y, besideServer), besideServer)
    .command('files', 'Where files are kept', files)
    .command('keys', 'The key that seals secrets', (keys: OperatorArgv) => keysCommands(keys, besideServer))
}

function usageCommand(y: OperatorArgv, besideServer: BesideServer): OperatorArgv {
  return y.command(
    'usage',
    'What takes room, in all and by workspace',
    (usage) =>
      usage
        .option('workspace', { type: 'string', describe: 'Slug: only this one by itself' })
        .option('json', { type: 'boolean', describe: 'One line of JSON instead of tables' }),
    async (args) =>
      besideServer(
        args,
        async ({ root }) => {
          const workspace = args.workspace ?? null
          if (workspace !== null && (await findWorkspaceBySlug(root, workspace)) === null)
            throw new OperatorError(`There is no workspace ${workspace}.`)
          const usage = await readUsage(root, { workspace })
          return args.json === true ? usage : usageTable(usage)
        },
        { readMs: countMs },
      ),
  )
}

const days = (describe: string) => ({ type: 'number', requiresArg: true, describe }) as const

function retentionCommand(y: OperatorArgv, besideServer: BesideServer): OperatorArgv {
  return y.command(
    'retention',
    'What the sweeps would remove now; removes nothing',
    (retention) =>
      retention
        .option('runs', days('Days for which ended runs are kept (default: SVC_KEEP_RUNS_DAYS)'))
        .option('task-history', days('Days for the history of closed tasks (SVC_KEEP_TASK_HISTORY_DAYS)'))
        .option('file-versions', days('Days for replaced versions of files (SVC_KEEP_FILE_VERSIONS_DAYS)')),
    async ({ runs, taskHistory, fileVersions, ...args }) =>
      besideServer(
        args,
        ({ root, world, config: { keep } }) =>
          dueNow(root, world.now(), {
            runsMs: daysMs(runs) ?? keep.runsMs,
            historyMs: daysMs(taskHistory) ?? keep.historyMs,
            versionsMs: daysMs(fileVersions) ?? keep.versionsMs,
          }),
        { readMs: countMs },
      ),
  )
}

function daysMs(asked: number | undefined): number | undefined {
  if (asked === undefined) return undefined
  if (!Number.isInteger(asked) || asked < 1 || asked > 36_500)
    throw new OperatorError('Days must be a whole number from 1 to 36500.')
  return asked * 86_400_000
}

function keysCommands(y: OperatorArgv, besideServer: BesideServer): OperatorArgv {
  const vaultOf = (config: OperatorConfig, world: World) => createVault(keySourceOf({ config }), world)
  return y
    .demandCommand(1)
    .command(
      'status',
      'With which key each value is sealed, and what no key here opens',
      (status) => status,
      async (args) =>
        besideServer(args, ({ root, config, world }) => readKeysState(root, vaultOf(config, world)), {
          readMs: countMs,
        }),
    )
    .command(
      'rotate',
      'Seal anew, with SVC_SECRETS_KEY, what is sealed with SVC_SECRETS_OTHER_KEY',
      (rotate) => rotate,
      async (args) => besideServer(args, ({ root, config, world }) => rotateKeys(root, vaultOf(config, world))),
    )
    .command(
      'rotate-run-tokens',
      'Sign the tokens of runs with another key from now on; those that were given stay good until they end',
      (rotate) => rotate,
      async (args) => besideServer(args, ({ root, world }) => rotateRunTokens(root, world)),
    )
}
