import { rm } from 'node:fs/promises'
import type { ControlRun } from '../../../shared/device/control.ts'
import type { DeviceIdentity } from '../../../shared/device/device-identity.ts'
import type { CommandContext, Flow } from '../../context/context.ts'
import { askDaemonIfThere } from '../../device/daemon-control.ts'
import { waitUntilStopped } from '../../device/daemon-process.ts'
import { ApiFailure, CliError } from '../../errors/cli-error.ts'
import { readIfThere } from '../../machine/files.ts'
import { writePrivately } from '../../machine/private-file.ts'
import { createClient } from '../../http/client.ts'
import { devicePlaces, type DevicePlaces } from '../../machine/paths.ts'
import { askService, serviceOfThisDevice } from '../../device/service-program.ts'
import { readIdentity } from '../../device/this-device.ts'
import { callerWith } from '../../sign-in/caller.ts'

/**
 * `device disconnect`: revokes the token first and forgets it last, so that the command can be repeated if a step in
 * between fails. With --local it forgets the token without asking the server, which may be gone. The spool stays while it holds events that the server does not have.
 */
export const deviceDisconnect: Flow = async (context) => {
  const { out, values, world } = context
  const isLocal = values.local['local'] === true
  const places = await devicePlaces(context.env)
  const identity = readIdentity(places)
  const status = await askDaemonIfThere(places, { op: 'status' })
  if (identity === null && status === null) {
    await out.result({ disconnected: false }, { look: 'device disconnect' })
    out.message('svc: this machine is not connected.')
    return
  }
  if (status !== null && status.runs.length > 0) throw runsAreActive(status.runs, isLocal)
  if (identity !== null && !isLocal) await revoke(context, { places, identity })
  if (status !== null) {
    // The daemon may have ended by itself when the server told it that it was removed.
    if (status.service?.startedByService === true && !(await isMachines(places))) await askService(places, 'stop')
    else await askDaemonIfThere(places, { op: 'stop' })
    if (!(await waitUntilStopped(places, world))) {
      throw new CliError('daemon_still_runs', `The device manager (pid ${status.pid}) has not ended yet.`, {
        exit: 'no_daemon',
        remediation: 'Type `svc device disconnect` again in a moment.',
      })
    }
  }
  if (identity !== null) {
    // When this machine connects to the same server again, it is the same device and finds its folders again.
    const { publicId, server } = identity
    await writePrivately(places.previous, `${JSON.stringify({ publicId, server })}\n`)
  }
  await rm(places.token, { force: true })
  await rm(places.identity, { force: true })
  await out.result({ disconnected: true, publicId: identity?.publicId ?? null }, { look: 'device disconnect' })
  const unsent = status?.spool.rows ?? 0
  if (unsent > 0)
    out.message(`svc: the spool in ${places.dir} still holds ${unsent} events that were not sent; it is kept.`)
  if ((await serviceOfThisDevice(places)) !== null)
    out.message('svc: the service stays installed, and starts nothing until `svc device connect`.')
  if (isLocal && identity !== null)
    out.message(`svc: ${identity.server} was not asked: until the device is removed there, its token is valid there.`)
  out.message('svc: this machine is no device any more.')
}

/** A service of the machine is root's to stop. What it starts some seconds later finds no identity, and ends for good. */
const isMachines = async (places: DevicePlaces): Promise<boolean> =>
  ((await serviceOfThisDevice(places))?.account ?? null) !== null

async function revoke(
  context: CommandContext,
  { places, identity }: { places: DevicePlaces; identity: DeviceIdentity },
): Promise<void> {
  const token = readIfThere(places.token)?.trim() ?? ''
  if (token === '') return
  const client = createClient(callerWith(identity.server, token), context.world)
  try {
    await client.call({ method: 'POST', path: '/api/device/disconnect' })
  } catch (error) {
    // A token that is not valid any more needs no revoking.
    if (error instanceof ApiFailure && error.status === 401) return
    if (error instanceof CliError && error.exit === 'unreachable') throw outOfReach(identity, error)
    throw error
  }
}

function outOfReach({ server }: DeviceIdentity, { code, message }: CliError): CliError {
  return new CliError(code.replace(/^cli\./, ''), message, {
    exit: 'unreachable',
    remediation: `If ${server} has moved, sign in there and type \`svc device connect\`. If it is gone for good, type \`svc device disconnect --local\`.`,
  })
}

function runsAreActive(runs: readonly ControlRun[], isLocal: boolean): CliError {
  const names = runs.map((run) => (run.agent === null ? run.runId : `${run.runId} (${run.agent})`))
  return new CliError('runs_active', `Runs are active on this device: ${names.join(', ')}.`, {
    remediation: isLocal
      ? 'Wait for them: the device ends them when it has been without its server for an hour.'
      : 'Wait for them, or cancel them with `svc run cancel RUN`.',
    details: { runIds: runs.map((run) => run.runId) },
  })
}
