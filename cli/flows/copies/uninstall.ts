import { rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import type { CommandContext, Flow } from '../../context/context.ts'
import { backUp, madeFolders, refuseShared, removeMade } from '../../copies/purge.ts'
import { commandLines, removeUnits, serverFrom, serverWith, unitsFrom } from '../../copies/running.ts'
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
  const folders = madeFolders([
    { path: dirname(await loginPath(env)), isNamed: env.configDir !== null },
    { path: places.dir, isNamed: env.stateDir !== null },
    { path: (await serverPlaces(env)).dir, isNamed: env.dataDir !== null },
  ])
  const made = [...new Set(folders.flatMap(({ path, real }) => [path, real]))]
  const [removed, kept] = isPurge ? [[...links, prefix, ...made], []] : [[...links, prefix], made]
  const backup = isPurge && made.length > 0 ? backupPath(new Date(context.world.now())) : null
  const units = process.getuid?.() === 0 ? unitsFrom(prefix) : []
  const result = { removed, kept, backup, service: service !== null, units }
  await refuseWhileUsed(context, { prefix, isPurge, runs: status?.runs.map(({ runId }) => runId) ?? [] })
  if (isPurge) refuseShared(folders, [homedir(), prefix])
  if (values.local['yes'] !== true) await confirm(context, result)
  // It is taken away once the backup is whole: else the device would not come back.
  if (service !== null) await askService(places, backup === null ? 'uninstall' : 'stop')
  else if (status !== null) await askDaemonIfThere(places, { op: 'stop' })
  if (status !== null && !(await waitUntilStopped(places, context.world)))
    throw new CliError('daemon_still_runs', `The device manager (pid ${status.pid}) has not ended.`, {
      exit: 'no_daemon',
      remediation: 'Nothing was removed. Type the command again in a moment.',
    })
  // That of this machine has ended; others have devices of their own.
  refuseWhileRunning(prefix, /\/device-manager\/main\.js run/)
  if (backup !== null) {
    await backUp(backup, folders)
    if (service !== null) await askService(places, 'uninstall')
  }
  await removeUnits(units)
  for (const link of links) rmSync(link, { force: true })
  if (isPurge) for (const folder of folders) removeMade(folder)
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
  { prefix, isPurge, runs }: { prefix: string; isPurge: boolean; runs: readonly string[] },
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
  const other = isPurge ? await serverWith(env) : null
  if (other !== null)
    throw new CliError('server_runs', `A server of another svc works with the data here (process ${other}).`, {
      remediation: 'Stop it first. Nothing was removed.',
    })
  // Without a word `svc-server` starts a server, too.
  refuseWhileRunning(prefix, /\/control-plane\/main\.js|\/run-host\/main\.js/)
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
