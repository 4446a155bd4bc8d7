import { existsSync } from 'node:fs'
import { homedir, userInfo } from 'node:os'
import type { ControlStatus } from '../../shared/device/control.ts'
import { serviceFileOf, systemServiceFileOf } from '../../shared/device/service-file.ts'
import type { ServiceAction, ServiceValue } from '../../shared/device/service.ts'
import type { CommandContext } from '../context/context.ts'
import { daemonArguments, daemonEnvironment, startDaemon, waitForLink } from './daemon-process.ts'
import { CliError } from '../errors/cli-error.ts'
import { parseJsonText } from '../../shared/lib/lines.ts'
import type { DevicePlaces } from '../machine/paths.ts'

// Asks `svc-device service` about the background service: only that program knows systemd and launchd.

/** Generous, because the program waits for tools that have limits of their own. */
const limitMs = 10 * 60_000
const maxOutputBytes = 1024 * 1024

/** Fails with the error that the program reports. */
export const askService = <A extends ServiceAction>(places: DevicePlaces, action: A): Promise<ServiceValue<A>> =>
  askAbout(action, [action], daemonEnvironment(places))

/** Asks as root about the service of the machine that keeps the device of this account running. The state folder is that of the account, unless a variable names one. */
export const askMachineService = <A extends ServiceAction>(account: string, action: A): Promise<ServiceValue<A>> =>
  askAbout(action, [action, '--system', '--user', account], process.env)

async function askAbout<A extends ServiceAction>(
  action: A,
  words: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<ServiceValue<A>> {
  const printed = await runProgram(words, env)
  // Imported here, because most devices have no service, and the schemas take more time than the rest of a command.
  const { serviceReply, serviceValues } = await import('../../shared/device/service.ts')
  const reply = serviceReply.safeParse(parseJsonText(printed))
  if (!reply.success) throw unreadable(printed)
  if (!reply.data.ok) {
    const { code, message, remediation } = reply.data.error
    throw new CliError(`service.${code}`, message, { remediation })
  }
  const value = serviceValues[action].safeParse(reply.data.value)
  if (!value.success) throw unreadable(printed)
  return value.data as ServiceValue<A>
}

function unreadable(printed: string): CliError {
  return new CliError('service.failed', `svc-device gave an answer that svc cannot read: ${printed.slice(0, 500)}`, {
    remediation: 'Install svc anew: its programs differ.',
  })
}

async function runProgram(words: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  // Imported here, because most commands have nothing to do with the service.
  const { execa } = await import('execa')
  const ended = await execa(process.execPath, daemonArguments('service', ...words), {
    stdio: ['ignore', 'pipe', 'inherit'],
    env,
    extendEnv: false,
    timeout: limitMs,
    maxBuffer: maxOutputBytes,
    stripFinalNewline: false,
    reject: false,
    // The program finishes what it has begun even if svc is told to end.
    cleanup: false,
  })
  if (ended.exitCode === undefined && ended.code !== undefined) throw new Error(ended.shortMessage)
  return ended.stdout ?? ''
}

/** The status of this device's service; null when it has none, which costs no process. */
export async function serviceOfThisDevice(places: DevicePlaces): Promise<ServiceValue<'status'> | null> {
  if (!serviceFiles().some((file) => file !== null && existsSync(file))) return null
  const status = await askService(places, 'status')
  const isOfOther = status.problems.some((problem) => problem.code === 'state_dir_differs')
  return status.installed && !isOfOther ? status : null
}

function serviceFiles(): (string | null)[] {
  const { platform } = process
  const own = serviceFileOf({ homeDir: homedir(), platform })
  try {
    return [own, systemServiceFileOf({ account: userInfo().username, platform })]
  } catch {
    // A container may run under a number that is in no list of users.
    return [own]
  }
}

/** Starts the daemon, through the service if this device has one, and waits for its link. */
export async function startInBackground(places: DevicePlaces, context: CommandContext): Promise<ControlStatus> {
  if ((await serviceOfThisDevice(places)) === null) return startDaemon(places, context)
  await askService(places, 'start')
  return waitForLink(places, context, { exit: () => null })
}
