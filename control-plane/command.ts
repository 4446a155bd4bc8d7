import yargs, { type Argv } from 'yargs'
import { realWorld } from '../shared/lib/world.ts'
import { version } from '../shared/lib/version.ts'
import { readConfig, readOperatorConfig, type ServerConfig, type ServerFlags } from './config.ts'
import { printBackup, printRestored } from './backup/commands.ts'
import { isOfSettings, troubleFor } from './command-trouble.ts'
import { ConfigError } from './process/config-error.ts'
import { registerAllRunEffects } from './register-run-effects.ts'
import { DatabaseClock } from './db/database-clock.ts'
import { silentLog } from './process/log.ts'
import { migrate } from './db/migrate.ts'
import { defaultWriteMs, openDatabase } from './db/open.ts'
import { checkSchema } from './db/schema-check.ts'
import { createLoginLink, serverAddress } from './operator/login-link.ts'
import { durationMs } from './operator/duration.ts'
import {
  companyCommands,
  deviceCommands,
  sessionCommands,
  tokenCommands,
  userCommands,
  type OnDatabase,
} from './operator/commands.ts'
import { keepingCommands, refuseMissing, type BesideServer } from './operator/keeping-commands.ts'
import { addUser, addUserWithoutToken, createToken, OperatorError, revokeToken } from './operator/people.ts'
import { bindRepository, shownBindings, unbindRepository } from './operator/repos.ts'
import { keepPrivate } from './private-files.ts'
import { roles } from './resources/members/store.ts'
import { sandboxDoctor } from './operator/sandbox-doctor.ts'
import { serve } from './serve.ts'
import { printInstalled, printServiceStatus, printUninstalled } from './service/commands.ts'
import { inTransaction } from './db/transaction.ts'

/** `svc-server`: the control plane, and the operator's commands, which work directly on the database. */
export async function runCommand(argv: readonly string[]): Promise<void> {
  registerAllRunEffects()
  try {
    await parser(argv).parseAsync()
  } catch (error) {
    const message = troubleFor(error)
    if (message === null) throw error
    process.stderr.write(`${message}\n`)
    // The exit also ends everything that was opened before the error.
    process.exit(isOfSettings(error) ? unusableConfig : 1)
  }
}

/** A supervisor that is told so (`RestartPreventExitStatus=78`) does not start the server again: only a change of its settings helps. */
const unusableConfig = 78

/** Of `migrate --check`, so that a script can tell it from a database that cannot be asked. */
const pendingMigrations = 3

/** Builds the parser. The last one of a flag that is given twice holds, as with svc. */
function parser(argv: readonly string[]): Argv {
  const commands = yargs([...argv])
    .scriptName('svc-server')
    .version(version)
    .strict()
    .parserConfiguration({ 'duplicate-arguments-array': false })
    .demandCommand(0)
    .option('data-dir', { type: 'string', describe: 'Folder of the database, keys and files (SVC_DATA_DIR)' })
    .option('database-url', { type: 'string', describe: 'postgres://... instead of SQLite (SVC_DATABASE_URL)' })
    .command(
      ['start', '$0'],
      'Run the control plane',
      (y) =>
        y.option('host', { type: 'string', describe: 'Address to listen on (default 127.0.0.1)' }).option('port', {
          // The port is read with the variable, whose refusal names what was typed.
          type: 'string',
          requiresArg: true,
          describe: 'Port to listen on (default 4400; 0: any free one)',
        }),
      async (args) => serve(readConfig(process.env, flagsOf(args))),
    )
    .command('user', 'People', (y) =>
      userCommands(y.demandCommand(1), onDatabase).command(
        'add',
        'Add a person to a workspace; prints a login token, unless people sign in at an OIDC issuer',
        (add) =>
          add
            .option('name', { type: 'string', demandOption: true })
            .option('email', { type: 'string', demandOption: true })
            .option('workspace', { type: 'string', describe: 'Slug; created with its company when it does not exist' })
            .option('role', {
              choices: roles,
              describe: 'Default: the role the person has, else owner of a new workspace, else member',
            })
            .option('token', {
              type: 'boolean',
              describe: 'With a login token, or --no-token; default: unless SVC_OIDC_ISSUER is set',
            })
            .option('expires-in', {
              type: 'string',
              describe: 'The token ends after 12h, 30d or 4w; default: when it is revoked',
            }),
        async (args) =>
          onDatabase(args, (tx, { world, config: { oidc } }) => {
            const { name, email, role, workspace, expiresIn } = args
            const person = { name, email, role: role ?? null, workspace: workspace ?? null }
            const hasToken = args.token ?? (expiresIn !== undefined || oidc === null)
            if (!hasToken && expiresIn !== undefined)
              throw new OperatorError('--expires-in is about the token that --no-token leaves out. Give one of them.')
            const lifeMs = expiresIn === undefined ? null : durationMs(expiresIn)
            return hasToken ? addUser(tx, world, { ...person, lifeMs }) : addUserWithoutToken(tx, world, person)
          }),
      ),
    )
    .command('company', 'Companies, which hold workspaces', (y) => companyCommands(y, onDatabase))
    .command('sandbox', 'Where cloud runs are executed', (y) =>
      y.demandCommand(1).command(
        'doctor',
        'Try the engine, the image, the limits and the walls of sandboxes',
        (doctor) => doctor,
        async (args) => sandboxDoctor(configFor(args)),
      ),
    )
    .command('session', 'Browsers that are signed in', (y) => sessionCommands(y, onExisting))
    .command('device', 'Machines that agents run on', (y) => deviceCommands(y, onExisting))
    .command('token', 'Login tokens', (y) =>
      tokenCommands(y.demandCommand(1), onExisting)
        .command(
          'create',
          'Give a member a new login token',
          (create) =>
            create
              .option('email', { type: 'string', demandOption: true })
              .option('workspace', { type: 'string', describe: 'Slug or id; default: the first joined' })
              .option('name', { type: 'string', describe: 'What the token is for' })
              .option('expires-in', { type: 'string', describe: '12h, 30d or 4w; default: until it is revoked' }),
          async (args) =>
            onExisting(args, (tx, { world }) =>
              createToken(tx, world, {
                email: args.email,
                workspace: args.workspace ?? null,
                name: args.name ?? null,
                lifeMs: args.expiresIn === undefined ? null : durationMs(args.expiresIn),
              }),
            ),
        )
        .command(
          'revoke <token>',
          'Revoke a login token by its id or its text',
          (revoke) => revoke.positional('token', { type: 'string', demandOption: true }),
          async (args) => onExisting(args, (tx, { world }) => revokeToken(tx, world, args.token)),
        ),
    )
    .command('repo', 'Repositories of the connection to GitHub that a workspace reaches', (y) =>
      y
        .demandCommand(1)
        .command('bind <repository>', 'Let a workspace reach owner/name, owner/* or *', namedRepository, async (args) =>
          onExisting(args, (tx, { world }) => bindRepository(tx, world, args)),
        )
        .command('unbind <repository>', 'Remove such a binding', namedRepository, async (args) =>
          onExisting(args, (tx) => unbindRepository(tx, args)),
        )
        .command(
          'list',
          'List all bindings',
          (list) => list,
          async (args) => onExisting(args, shownBindings),
        ),
    )
    .command(
      'login-link',
      'Print a link that signs a browser in as a member, once, within 15 minutes',
      (link) =>
        link
          .option('email', { type: 'string', demandOption: true })
          .option('workspace', { type: 'string', describe: 'Slug or id; default: the first joined' }),
      async (args) =>
        onExisting(args, (tx, { world, config }) =>
          createLoginLink(tx, world, {
            email: args.email,
            workspace: args.workspace ?? null,
            server: serverAddress(config),
          }),
        ),
    )
    .command(
      'migrate',
      "Bring the database up to this release's schema, as the start of a server does",
      (y) =>
        y.option('check', {
          type: 'boolean',
          default: false,
          describe: `Only say what would be made; exit status ${pendingMigrations} when that is anything`,
        }),
      async (args) => {
        const config = readOperatorConfig(process.env, flagsOf(args))
        if (!args.check) return onDatabase(args, async () => checkSchema(config.databaseUrl))
        const found = await checkSchema(config.databaseUrl)
        process.stdout.write(`${JSON.stringify(found)}\n`)
        if (found.pending.length > 0) process.exitCode = pendingMigrations
      },
    )
    .command(
      'backup <file>',
      'Make a backup of a server on SQLite, which may serve meanwhile: a tar archive with database, key and files',
      (backup) =>
        backup.positional('file', { type: 'string', demandOption: true }).option('key', {
          type: 'boolean',
          default: true,
          describe: 'With the key of the secrets, or --no-key: keep that one apart then',
        }),
      async (args) => printBackup(configFor(args), args),
    )
    .command(
      'restore <file>',
      'Restore a backup while the server does not run',
      (restore) =>
        restore.positional('file', { type: 'string', demandOption: true }).option('replace', {
          type: 'boolean',
          default: false,
          describe: "Set the server's state aside that is there already",
        }),
      async (args) => printRestored(configFor(args), args),
    )
    .command(
      'install-service',
      'Let systemd or launchd keep the server running: as root for the machine, with an account of its own, else for the person',
      (y) =>
        y.option('user', {
          type: 'string',
          describe: 'The account of a service of the machine (default svc, made if it is missing)',
        }),
      async (args) => printInstalled(readOperatorConfig(process.env, flagsOf(args)).dataDir, args.user),
    )
    .command(
      'uninstall-service',
      'End the service; its state and settings stay',
      (y) => y,
      async (args) => printUninstalled(readOperatorConfig(process.env, flagsOf(args)).dataDir),
    )
    .command(
      'service-status',
      'Say whether the service is installed, and how it is',
      (y) => y,
      async (args) => printServiceStatus(readOperatorConfig(process.env, flagsOf(args)).dataDir),
    )
  return keepingCommands(commands, besideServer, (args) => readConfig(process.env, flagsOf(args))).fail(
    (message, error) => {
      // A flag that lacks its value is told by an error of yargs.
      if (error && error.name !== 'YError') throw error
      const sentence = `${message ?? error?.message}\nType: svc-server --help`
      throw isStart(argv) ? new ConfigError(sentence) : new OperatorError(sentence)
    },
  )
}

const namedRepository = (y: Argv<ServerFlags>) =>
  y
    .positional('repository', { type: 'string', demandOption: true })
    .option('workspace', { type: 'string', demandOption: true, describe: 'Slug' })

const isStart = ([first = 'start']: readonly string[]): boolean => first === 'start' || first.startsWith('-')

const flagsOf = ({ host, port, dataDir, databaseUrl }: ServerFlags): ServerFlags => ({
  host,
  port,
  dataDir,
  databaseUrl,
})

function configFor(args: ServerFlags): ServerConfig {
  const config = readConfig(process.env, flagsOf(args))
  keepPrivate(config)
  return config
}

/** Does the work in one transaction on the migrated database, and prints its result as one line of JSON. */
const onDatabase: OnDatabase = (args, work) => besideServer(args, inOneTransaction(work))

/** For what is asked about somebody who must be there: it makes no database. */
const onExisting: OnDatabase = (args, work) => besideServer(args, inOneTransaction(work), { isOnExisting: true })

const inOneTransaction =
  (work: Parameters<OnDatabase>[1]): Parameters<BesideServer>[1] =>
  ({ root, ...of }) =>
    inTransaction(root, (tx) => work(tx, of))

/** Does work that is too long for one transaction. A text is printed as it is, all else as one line of JSON. */
const besideServer: BesideServer = async (args, work, { readMs = 0, isOnExisting = false } = {}) => {
  const config = readOperatorConfig(process.env, flagsOf(args))
  if (isOnExisting) refuseMissing(config.databaseUrl)
  keepPrivate(config)
  // A command waits for a busy server for a while, also where requests give up earlier.
  const writeMs = Math.max(config.writeMs, defaultWriteMs)
  const database = openDatabase({ url: config.databaseUrl, readMs: Math.max(config.readMs, readMs), writeMs })
  const { root } = database
  try {
    const clock = new DatabaseClock({ root, world: realWorld, log: silentLog })
    await clock.start()
    clock.stop()
    const { world } = clock
    await migrate(root, world.now())
    const result = await work({ root, config, world })
    process.stdout.write(`${typeof result === 'string' ? result : JSON.stringify(result)}\n`)
  } finally {
    await database.close()
  }
}
