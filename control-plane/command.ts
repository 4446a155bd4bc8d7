import yargs, { type Argv } from 'yargs'
import { realWorld } from '../shared/lib/world.ts'
import { version } from '../shared/lib/version.ts'
import { ConfigError, readConfig, type ServerConfig, type ServerFlags } from './config.ts'
import { migrate } from './db/migrate.ts'
import { openDatabase, type Tx } from './db/open.ts'
import { addUser, createToken, OperatorError, revokeToken } from './operator/people.ts'
import { roles } from './resources/members/store.ts'
import { serve } from './serve.ts'

/** `svc-server`: the control plane, and the operator's commands, which work on the database itself. */
export async function runCommand(argv: readonly string[]): Promise<void> {
  try {
    await parser(argv).parseAsync()
  } catch (error) {
    if (!(error instanceof ConfigError || error instanceof OperatorError)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  }
}

function parser(argv: readonly string[]): Argv {
  return yargs([...argv])
    .scriptName('svc-server')
    .version(version)
    .strict()
    .demandCommand(0)
    .option('data-dir', { type: 'string', describe: 'Folder of the database, keys and files (SVC_DATA_DIR)' })
    .option('database-url', { type: 'string', describe: 'postgres://... instead of SQLite (SVC_DATABASE_URL)' })
    .command(
      ['start', '$0'],
      'Run the control plane',
      (y) =>
        y
          .option('host', { type: 'string', describe: 'Address to listen on (default 127.0.0.1)' })
          .option('port', { type: 'number', describe: 'Port to listen on (default 4400; 0: any free one)' }),
      async (args) => serve(configOf(args)),
    )
    .command('user', 'People', (y) =>
      y.demandCommand(1).command(
        'add',
        'Add a person to a workspace; prints a login token',
        (add) =>
          add
            .option('name', { type: 'string', demandOption: true })
            .option('email', { type: 'string', demandOption: true })
            .option('workspace', { type: 'string', describe: 'Slug; created with its company when it does not exist' })
            .option('role', { choices: roles, default: 'member' as const }),
        async (args) =>
          onDatabase(args, (tx) => {
            const { name, email, role } = args
            return addUser(tx, realWorld, { name, email, role, workspace: args.workspace ?? null })
          }),
      ),
    )
    .command('token', 'Login tokens', (y) =>
      y
        .demandCommand(1)
        .command(
          'create',
          'Give a member a new login token',
          (create) =>
            create
              .option('email', { type: 'string', demandOption: true })
              .option('workspace', { type: 'string', describe: 'Slug or id; default: the first joined' })
              .option('name', { type: 'string', describe: 'What the token is for' }),
          async (args) =>
            onDatabase(args, (tx) =>
              createToken(tx, realWorld, {
                email: args.email,
                workspace: args.workspace ?? null,
                name: args.name ?? null,
              }),
            ),
        )
        .command(
          'revoke <token>',
          'Revoke a login token, by its id or itself',
          (revoke) => revoke.positional('token', { type: 'string', demandOption: true }),
          async (args) => onDatabase(args, (tx) => revokeToken(tx, realWorld, args.token)),
        ),
    )
    .fail((message, error) => {
      if (error) throw error
      throw new OperatorError(`${message}\nType: svc-server --help`)
    })
}

function configOf(args: { [K in keyof ServerFlags]?: ServerFlags[K] }): ServerConfig {
  const { host, port, dataDir, databaseUrl } = args
  return readConfig(process.env, { host, port, dataDir, databaseUrl })
}

/** Does the work in one transaction on the migrated database and prints its result as one line of JSON. */
async function onDatabase(args: ServerFlags, work: (tx: Tx) => Promise<object>): Promise<void> {
  const config = configOf(args)
  const database = openDatabase({ url: config.databaseUrl })
  try {
    await migrate(database.root, realWorld.now())
    const result = await database.root.transaction(work)
    process.stdout.write(`${JSON.stringify(result)}\n`)
  } finally {
    await database.close()
  }
}
