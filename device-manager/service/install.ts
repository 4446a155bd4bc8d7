import { chmodSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { ServiceProblem, ServiceValue } from '../../shared/device/service.ts'
import { installedText, mustBeAllowed, refuseOtherStateDir, type ServiceContext } from './context.ts'
import { pathWarnings } from './definition.ts'
import { lingeringProblem, switchLingeringBack, switchLingeringOn } from './linger.ts'
import { ServiceError } from './service-error.ts'
import { startService, whoRuns } from './start.ts'

type Undo = { what: string; act: () => Promise<void> | void }

/**
 * Installs the service, or brings it up to date, and puts it in the place of a daemon that was started by hand. What is done
 * already is ignored. A step that fails undoes those before it, so that afterwards the machine is as it was.
 */
export async function install(context: ServiceContext): Promise<ServiceValue<'install'>> {
  mustBeAllowed(context, 'install')
  await mustBeDevice(context)
  await context.manager.reach()
  refuseOtherService(context)
  const before = installedText(context)
  refuseOtherStateDir(context, before)
  const undo: Undo[] = []
  try {
    return await carryOut(context, { before, undo })
  } catch (error) {
    const left = await undoAll(undo)
    if (left.length === 0) throw error
    const { code, message, remediation } =
      error instanceof ServiceError ? error : new ServiceError('failed', String(error), '')
    throw new ServiceError(code, `${message} These could not be undone: ${left.join('; ')}.`, remediation)
  }
}

async function carryOut(
  context: ServiceContext,
  { before, undo }: { before: string | null; undo: Undo[] },
): Promise<ServiceValue<'install'>> {
  const { manager, definition } = context
  const text = manager.write(definition)
  const { daemon, state, isOfService } = await whoRuns(context)
  const report = async (more: Pick<ServiceValue<'install'>, 'changed' | 'tookOver' | 'pid' | 'link'>) => ({
    manager: manager.kind,
    file: manager.file,
    ...more,
    warnings: [...pathWarnings(definition), ...lingeringProblem(await manager.lingering()), ...rootProblem(context)],
  })
  const isUpToDate = text === before && state.loaded && state.enabled
  if (isUpToDate && isOfService && daemon !== null) {
    await switchLingeringOn(context)
    return report({ changed: false, tookOver: null, pid: daemon.pid, link: daemon.link })
  }
  // Undone last, when the files are as they were: what ran is started again.
  const wasStopped = { it: false }
  undo.push({
    what: 'the earlier device manager',
    act: () => (wasStopped.it ? startAgain(context, state.running) : undefined),
  })
  await context.state.makeLogs()
  undo.push({ what: manager.file, act: () => putBack(context, before) })
  replaceFile(manager.file, text)
  if (!state.enabled) undo.push({ what: 'the enabled service', act: () => manager.disable() })
  await manager.enable()
  if (await switchLingeringOn(context)) undo.push({ what: 'lingering', act: () => switchLingeringBack(context) })
  wasStopped.it = daemon !== null || state.running
  if (daemon !== null && !isOfService) await context.state.stopDaemon()
  await manager.stop()
  undo.push({ what: 'the started service', act: () => manager.stop() })
  const started = await startService(context)
  return report({ changed: true, tookOver: daemon !== null && !isOfService ? daemon.pid : null, ...started })
}

async function mustBeDevice({ state, manager }: ServiceContext): Promise<void> {
  const { identityTrouble } = await state.look()
  if (identityTrouble === null) return
  const connect = 'svc device connect'
  throw new ServiceError(
    'not_connected',
    identityTrouble,
    manager.account === null
      ? `Type \`${connect}\`, then this command again.`
      : `Sign in and connect as ${manager.account}, then type this command again: sudo -iu ${manager.account} svc login --server https://...; sudo -iu ${manager.account} ${connect}`,
  )
}

/** Two services of one account would start two daemons for one device. */
function refuseOtherService({ other, manager }: ServiceContext): void {
  if (other === null) return
  throw new ServiceError(
    'other_service',
    `The account ${manager.account} has a service of its own: ${other.file}.`,
    `Uninstall that one first: ${other.uninstall}`,
  )
}

function rootProblem({ manager }: ServiceContext): ServiceProblem[] {
  if (manager.account !== 'root') return []
  const message = 'Runs have the account of root, and can change all of this machine.'
  return [{ code: 'as_root', message, fix: 'sudo useradd --create-home --shell /bin/bash svc-agents' }]
}

/** launchd takes no file that others could write; a reader of a half-written one would see no service. */
function replaceFile(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  const draft = `${path}.${process.pid}.new`
  try {
    writeFileSync(draft, text, { mode: 0o644, flush: true })
    // Whatever the umask of root: the account reads which service is its.
    chmodSync(draft, 0o644)
    renameSync(draft, path)
  } catch (error) {
    rmSync(draft, { force: true })
    throw new ServiceError(
      'failed',
      `${path} cannot be written: ${error instanceof Error ? error.message : String(error)}`,
      'Make the folder writable for your user, then type the command again.',
    )
  }
}

async function putBack({ manager }: ServiceContext, before: string | null): Promise<void> {
  if (before === null) rmSync(manager.file, { force: true })
  else replaceFile(manager.file, before)
  await manager.reload()
}

async function startAgain(context: ServiceContext, wasOfService: boolean): Promise<void> {
  return wasOfService ? context.manager.start() : context.state.startDaemonByHand()
}

async function undoAll(undo: readonly Undo[]): Promise<string[]> {
  const left: string[] = []
  for (const { what, act } of undo.toReversed()) {
    try {
      await act()
    } catch (error) {
      left.push(`${what} (${error instanceof Error ? error.message : String(error)})`)
    }
  }
  return left
}
