import type { Argv } from 'yargs'
import type { World } from '../../shared/lib/world.ts'
import type { Tx } from '../db/open.ts'
import type { OperatorConfig, ServerFlags } from '../config.ts'
import { lockCompany, shownCompanies, unlockCompany } from './companies.ts'
import { endSessions, listDevices, listSessions, listTokens, removeUser, revokeDevice, unlinkUser } from './access.ts'

// The operator's commands about who has access. Each works on the database and prints one line of JSON.
/** The command line with the options of all commands. */
export type OperatorArgv = Argv<{ 'data-dir': string | undefined } & { 'database-url': string | undefined }>
export type OnDatabase = (
  args: ServerFlags,
  work: (tx: Tx, of: { config: OperatorConfig; world: World }) => Promise<object>,
) => Promise<void>

const emailOption = { type: 'string', describe: 'Only those of this person' } as const

export function userCommands(y: OperatorArgv, onDatabase: OnDatabase): OperatorArgv {
  return y
    .command(
      'remove',
      'Remove a person from every workspace, with all tokens, sessions and devices',
      (remove) =>
        remove.option('email', { type: 'string', demandOption: true }).option('new-owner', {
          type: 'string',
          describe: 'Address of the new owner of workspaces that the person alone owns',
        }),
      async (args) =>
        onDatabase(args, (tx, { world }) =>
          removeUser(tx, world, { email: args.email, newOwner: args.newOwner ?? null }),
        ),
    )
    .command(
      'unlink',
      'Forget who a person is at an OIDC issuer',
      (unlink) =>
        unlink
          .option('email', { type: 'string', demandOption: true })
          .option('issuer', { type: 'string', describe: 'Default: all issuers' }),
      async (args) => onDatabase(args, (tx) => unlinkUser(tx, { email: args.email, issuer: args.issuer ?? null })),
    )
}

export function tokenCommands(y: OperatorArgv, onDatabase: OnDatabase): OperatorArgv {
  return y.command(
    'list',
    'List the login tokens that work',
    (list) => list.option('email', emailOption),
    async (args) =>
      onDatabase(args, (tx, { world, config: { tokenIdleMs } }) =>
        listTokens(tx, world, { email: args.email ?? null, idleMs: tokenIdleMs }),
      ),
  )
}

const companyOf = (y: OperatorArgv) =>
  y.positional('workspace', { type: 'string', demandOption: true, describe: 'Slug of a workspace of the company' })

export function companyCommands(y: OperatorArgv, onDatabase: OnDatabase): OperatorArgv {
  return y
    .demandCommand(1)
    .command('lock <workspace>', 'End the runs of a company, and decline its wakes', companyOf, async (args) =>
      onDatabase(args, (tx, { world, config: { leaseMs } }) => lockCompany(tx, world, { ...args, leaseMs })),
    )
    .command('unlock <workspace>', 'Let the agents of a company work again', companyOf, async (args) =>
      onDatabase(args, (tx, { world }) => unlockCompany(tx, world, args)),
    )
    .command(
      'list',
      'List the companies with their workspaces',
      (list) => list,
      async (args) => onDatabase(args, shownCompanies),
    )
}

export function sessionCommands(y: OperatorArgv, onDatabase: OnDatabase): OperatorArgv {
  return y
    .demandCommand(1)
    .command(
      'list',
      'List the browsers that are signed in',
      (list) => list.option('email', emailOption),
      async (args) =>
        onDatabase(args, (tx, { world, config: { sessions } }) =>
          listSessions(tx, world, { email: args.email ?? null, idleMs: sessions.idleMs }),
        ),
    )
    .command(
      'end [id]',
      'End a session, or all of a person',
      (end) =>
        end.positional('id', { type: 'string' }).option('email', { type: 'string', describe: 'All of this person' }),
      async (args) =>
        onDatabase(args, (tx, { world }) => endSessions(tx, world, { id: args.id ?? null, email: args.email ?? null })),
    )
}

export function deviceCommands(y: OperatorArgv, onDatabase: OnDatabase): OperatorArgv {
  return y
    .demandCommand(1)
    .command(
      'list',
      'List the devices of all workspaces',
      (list) => list.option('email', emailOption),
      async (args) => onDatabase(args, (tx) => listDevices(tx, args.email ?? null)),
    )
    .command(
      'revoke <id>',
      'Cut a device off; its runs end',
      (revoke) => revoke.positional('id', { type: 'string', demandOption: true }),
      async (args) => onDatabase(args, (tx, { world }) => revokeDevice(tx, world, args.id)),
    )
}
