import { existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import type { CommandContext, Flow } from '../../context/context.ts'
import { commandLines, removeUnits, serverFrom, unitsFrom } from '../../copies/running.ts'
import { isLinkInto, Prefix } from '../../copies/prefix.ts'
import { demandPrefix, thisCopy } from '../../copies/this-copy.ts'
import { askDaemonIfThere } from '../../device/daemon-control.ts'
import { waitUntilStopped } from '../../device/daemon-process.ts'
import { askService, serviceOfThisDevice } from '../../device/service-program.ts'
import { CliError } from '../../errors/cli-error.ts'
import { programNames } from '../../../shared/releases/copy.ts'
import { askYesOrNo } from '../../machine/ask.ts'
import { devicePlaces, loginPath, serverPlaces } from '../../machine/paths.ts'

/**
 * `uninstall`: shows what it would remove, asks, and removes the service, the names of the programs and all versions. What people made (login,
 * device, spool, the server's data) stays, or goes with --purge, once a backup of it is whole.
 */
export const uninstall: Flow = async (context) => {
  const { env, out, values } = context
  if (env.runId !== null)
    throw new CliError('not_in_a_run', 'svc is not uninstalled from within a run.', {
      remediation: 'A person types it, outside of runs.',
    })
  const prefix = demandPrefix(thisCopy(), 'uninstall')
  const places = await devicePlaces(env)
  const isPurge = values.local['purge'] === true
  const status = await askDaemonIfThere(places, { op: 'status' })
  const service = await serviceOfThisDevice(places)
  const links = linksInto(prefix)
  const made = [dirname(await loginPath(env)), places.dir, (await serverPlaces(env)).dir].filter(existsSync)
  const [removed, kept] = isPurge ? [[...links, prefix, ...made], []] : [[...links, prefix], made]
  const backup = isPurge && made.length > 0 ? backupPath(new Date(context.world.now())) : null
  const units = process.getuid?.() === 0 ? unitsFrom(prefix) : []
  const result = { removed, kept, backup, service: service !== null, units }
  await refuseWhileUsed(context, { prefix, runs: status?.runs.map(({ runId }) => runId) ?? [] })
  if (values.local['yes'] !== true) await confirm(context, result)
  if (service !== null) await askService(places, 'uninstall')
  else if (status !== null) await askDaemonIfThere(places, { op: 'stop' })
  if (status !== null && !(await waitUntilStopped(places, context.world)))
    throw new CliError('daemon_still_runs', `The device manager (pid ${status.pid}) has not ended.`, {
      exit: 'no_daemon',
      remediation: 'Nothing was removed. Type the command again in a moment.',
    })
  // That of this machine has ended; others have devices of their own.
  refuseWhileRunning(prefix, /\/device-manager\/main\.js run/)
  if (backup !== null) await backUp(backup, made)
  await removeUnits(units)
  for (const path of removed) if (path !== prefix) rmSync(path, { recursive: true, force: true })
  await out.result(result, { look: 'uninstall' })
  // Last, since what has not been loaded of this program cannot be loaded any more.
  new Prefix(prefix).remove()
}

/** The names of the programs that `svc install` makes, in the folders that it takes when none is named and in those of the PATH. */
function linksInto(prefix: string): string[] {
  const usual = ['/usr/local/bin', join(homedir(), '.local/bin')]
  const folders = new Set([...usual, ...(process.env['PATH'] ?? '').split(':')].filter((folder) => folder !== ''))
  return [...folders]
    .flatMap((folder) => programNames.map((name) => join(folder, name)))
    .filter((link) => isLinkInto(link, prefix))
}

async function refuseWhileUsed(
  { env }: CommandContext,
  { prefix, runs }: { prefix: string; runs: readonly string[] },
): Promise<void> {
  if (runs.length > 0)
    throw new CliError('runs_are_active', `Runs are live on this machine: ${runs.slice(0, 5).join(', ')}.`, {
      remediation: 'Wait for them, or cancel them by `svc run cancel RUN`.',
    })
  const server = await serverFrom(prefix, env)
  if (server !== null)
    throw new CliError('server_runs', `A server runs from ${prefix} (process ${server.pid}).`, {
      remediation: server.unit === null ? 'Stop it first.' : `Type: systemctl stop ${server.unit}`,
    })
  refuseWhileRunning(prefix, /\/control-plane\/main\.js start|\/run-host\/main\.js/)
}

/** Fails where a program runs from there, as of another state folder or another user. */
function refuseWhileRunning(prefix: string, program: RegExp): void {
  const found = (commandLines() ?? '').split('\n').find((line) => line.includes(`${prefix}/`) && program.test(line))
  if (found === undefined) return
  throw new CliError('programs_run', `A program runs from ${prefix}: ${found.slice(0, 200)}`, {
    remediation: 'Stop it first. Nothing was removed.',
  })
}

async function confirm(
  { out, isInteractive }: CommandContext,
  {
    removed,
    kept,
    backup,
    service,
    units,
  }: {
    removed: readonly string[]
    kept: readonly string[]
    backup: string | null
    service: boolean
    units: readonly string[]
  },
): Promise<void> {
  const lines = [
    ...(service ? ['stop and remove the service of the device manager'] : []),
    ...units.map((unit) => `remove the service ${unit} of this machine`),
    ...removed.map((path) => `remove ${path}`),
    ...(backup === null ? [] : [`back up before that: ${backup}`]),
    ...kept.map((path) => `keep ${path}`),
  ]
  for (const line of lines) out.message(`svc: would ${line}`)
  if (isInteractive && (await askYesOrNo('svc: go on?'))) return
  throw new CliError('not_confirmed', 'Nothing was removed.', { remediation: 'Add --yes to go on without a question.' })
}

function backupPath(now: Date): string {
  const day = now.toISOString().slice(0, 19).replaceAll(':', '')
  return join(homedir(), `svc-backup-${day}.tar.gz`)
}

/** Fails before anything is removed where the archive cannot be made whole. */
async function backUp(archive: string, folders: readonly string[]): Promise<void> {
  const { execa } = await import('execa')
  const draft = `${archive}.part`
  // Sockets of programs that have ended are no files for tar.
  const sockets = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .map((name) => join(folder, name))
      .filter((path) => statSync(path, { throwIfNoEntry: false })?.isSocket() === true),
  )
  for (const socket of sockets) rmSync(socket)
  const from = folders.flatMap((folder) => ['-C', dirname(folder), basename(folder)])
  const before = process.umask(0o077)
  try {
    const ended = await execa('tar', ['-czf', draft, ...from], { stdin: 'ignore', reject: false })
    if (ended.failed)
      throw new CliError(
        'no_backup',
        `The backup could not be made: ${(ended.stderr || ended.shortMessage || '').slice(0, 500)}`,
        {
          remediation: 'Nothing was removed. Make room, or remove the folders yourself.',
        },
      )
    renameSync(draft, archive)
  } finally {
    process.umask(before)
    rmSync(draft, { force: true })
  }
}
