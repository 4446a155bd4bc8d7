import { hostname } from 'node:os'
import type { EnrolRequest } from '../../../shared/api/device-internal.ts'
import { enrolReply, type ControlStatus } from '../../../shared/device/control.ts'
import type { DeviceIdentity } from '../../../shared/device/device-identity.ts'
import { stateDirTrouble } from '../../../shared/lib/places.ts'
import { version } from '../../../shared/lib/version.ts'
import type { CommandContext, Flow } from '../../context/context.ts'
import { askDaemonIfThere } from '../../device/daemon-control.ts'
import { runDaemonHere } from '../../device/daemon-process.ts'
import { restartDaemon } from '../../device/restart-daemon.ts'
import { followServer } from '../../device/server-moved.ts'
import { ApiFailure, CliError, usageError } from '../../errors/cli-error.ts'
import { parseJsonText } from '../../../shared/lib/lines.ts'
import { textAt } from '../../replies/fields.ts'
import { readIfThere } from '../../machine/files.ts'
import { writePrivately } from '../../machine/private-file.ts'
import type { Client } from '../../calls/client.ts'
import { createClient } from '../../http/client.ts'
import { devicePlaces, type DevicePlaces } from '../../machine/paths.ts'
import { startInBackground } from '../../device/service-program.ts'
import { callerWith } from '../../sign-in/caller.ts'
import { readIdentity, refusalOf } from '../../device/this-device.ts'

/**
 * `device connect`: enrols this machine and starts the daemon. Skips each step that is done already, so the command may
 * be given at any time.
 */
export const deviceConnect: Flow = async (context) => {
  const { env, out, values } = context
  if (env.run !== null)
    throw usageError(
      'A device is connected with a login, not within a run.',
      'Unset SVC_TOKEN, or type this in your own shell.',
    )
  const places = await devicePlaces(env)
  const running = await askDaemonIfThere(places, { op: 'status' })
  if (running !== null) {
    const moved = await movedServer(context, places, running)
    const isRefused =
      moved === null && refusalOf(places) !== null && !(await hasToken(context, { places, known: running }))
    if (isRefused) await enrol(context, places, running)
    if (moved !== null || isRefused) {
      await show(context, await restartDaemon(context, places, running))
      return 0
    }
    await show(context, running)
    out.message(`svc: the device manager runs already (pid ${running.pid}).`)
    return 0
  }
  const before = readIdentity(places)
  const known = before === null ? null : ((await movedServer(context, places, before)) ?? before)
  const isEnrolled = known !== null && (await hasToken(context, { places, known }))
  // Before the server makes a device that no daemon could be started for.
  const trouble = stateDirTrouble(places.dir, process.platform)
  if (trouble !== null) throw usageError(trouble)
  const identity = isEnrolled ? known : await enrol(context, places, known)
  if (isEnrolled && values.local['name'] !== undefined) {
    out.message('svc: this device has its name already; change it with `svc device set --display-name`.')
  }
  if (values.local['foreground'] === true) {
    out.message(`svc: device ${identity.publicId} (${identity.displayName}) of ${identity.server}; Ctrl-C ends it.`)
    return runDaemonHere(places)
  }
  const status = await startInBackground(places, context)
  await show(context, status)
  out.message(`svc: connected as ${status.displayName} (${identity.publicId}). See \`svc device status\`.`)
  return 0
}

async function show({ out }: CommandContext, status: ControlStatus): Promise<void> {
  const { publicId, deviceId, displayName, server, pid, link } = status
  await out.result({ publicId, deviceId, displayName, server, pid, link: link.state }, { look: 'device connect' })
}

/**
 * Returns the identity with the address of the login where that is another one than the device's, and the device's server is
 * there; else null. Even without a login an enrolled device can be started: it has a token of its own.
 */
async function movedServer(
  context: CommandContext,
  places: DevicePlaces,
  { publicId, deviceId, displayName, server }: DeviceIdentity,
): Promise<DeviceIdentity | null> {
  const { out, world } = context
  let client: Client
  try {
    client = await context.connect()
  } catch (error) {
    if (error instanceof CliError && error.code === 'cli.not_signed_in') return null
    throw error
  }
  if (sameServer(client.caller.server, server)) return null
  const known = { publicId, deviceId, displayName, server }
  const moved = await followServer(client, { places, known, world })
  out.message(`svc: the server of this device was ${server}, and is now ${moved.server}.`)
  return moved
}

/** False when the server does not accept the token any more (removed, retired): then the device is enrolled anew. */
async function hasToken(
  { world }: CommandContext,
  { places, known }: { places: DevicePlaces; known: DeviceIdentity },
): Promise<boolean> {
  const token = readIfThere(places.token)?.trim() ?? ''
  if (token === '') return false
  const client = createClient(callerWith(known.server, token), world)
  try {
    const reply = await client.send({ method: 'GET', path: '/api/device/config' })
    return reply.status !== 401
  } catch (error) {
    // The server is out of reach: the daemon starts all the same and keeps trying.
    if (error instanceof CliError && error.exit === 'unreachable') return true
    throw error
  }
}

/**
 * Ignores harmless differences: the server may use another name for itself than the login did (`localhost`, a proxy).
 */
function sameServer(a: string, b: string): boolean {
  const parts = (text: string) => {
    const url = new URL(text)
    const host = ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname) ? 'here' : url.hostname
    return `${url.protocol}//${host}:${url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port}`
  }
  return parts(a) === parts(b)
}

async function enrol(
  context: CommandContext,
  places: DevicePlaces,
  known: DeviceIdentity | null,
): Promise<DeviceIdentity> {
  const client = await context.connect()
  const name = context.values.local['name']
  const previous = known ?? previousDevice(places)
  const request: EnrolRequest = {
    ...(typeof name === 'string' ? { displayName: name } : {}),
    hostname: hostname().slice(0, 255) || 'unknown',
    platform: process.platform,
    version,
  }
  const body = await askToEnrol(client, request, previous?.publicId ?? null)
  const reply = enrolReply.safeParse(body)
  if (!reply.success) {
    throw new CliError('not_our_server', `What ${client.caller.server} answered cannot be read.`, {
      exit: 'unreachable',
    })
  }
  const { token, ...identity } = reply.data
  // The address by which this machine reached the server works from here; the server's own address may not.
  const kept = { ...identity, server: client.caller.server }
  // The token is written first: an identity without a token is enrolled anew, and a token without an identity is never
  // used.
  await writePrivately(places.token, `${token}\n`)
  await writePrivately(places.identity, `${JSON.stringify(kept, null, 2)}\n`)
  return kept
}

/**
 * A device that now belongs to somebody else, or to another workspace, looks unknown. Then this machine becomes a new
 * device.
 */
async function askToEnrol(client: Client, request: EnrolRequest, publicId: string | null): Promise<unknown> {
  const call = { method: 'POST', path: '/api/device/enrol' }
  if (publicId === null) return (await client.call({ ...call, body: request })).body
  try {
    return (await client.call({ ...call, body: { ...request, publicId } })).body
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.code !== 'resource_not_found') throw error
    return (await client.call({ ...call, body: request })).body
  }
}

/** The device that the machine was before it was disconnected: a server that does not know it makes a new one. */
function previousDevice(places: DevicePlaces): { publicId: string } | null {
  const publicId = textAt(parseJsonText(readIfThere(places.previous) ?? ''), 'publicId')
  return publicId === null ? null : { publicId }
}
