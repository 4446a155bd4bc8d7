import type { CommandContext, Flow } from '../../context/context.ts'
import { askDaemon, askDaemonIfThere } from '../../device/daemon-control.ts'
import { demandProgram } from '../../device/daemon-process.ts'
import { restartDaemon } from '../../device/restart-daemon.ts'
import { CliError } from '../../errors/cli-error.ts'
import { devicePlaces, type DevicePlaces } from '../../machine/paths.ts'
import { readIdentity } from '../../device/this-device.ts'

/** Live runs get up to 30 minutes. */
const drainMs = 30 * 60_000
const pollMs = 1_000

/**
 * `device restart`: live runs belong to their run hosts, which outlive the daemon, and the new daemon takes them over.
 * With --drain the command waits for their end, which a change of the run hosts themselves needs. A daemon that runs is stopped
 * only for a program that starts.
 */
export const deviceRestart: Flow = async (context) => {
  const { env, out, values } = context
  const places = await devicePlaces(env)
  const status = await askDaemonIfThere(places, { op: 'status' })
  if (status === null && readIdentity(places) === null) {
    throw new CliError('no_device', 'This machine is not a device.', {
      exit: 'no_daemon',
      remediation: 'Type `svc device connect`.',
    })
  }
  if (status !== null) await demandProgram(places)
  if (status !== null && values.local['drain'] === true) await drain(context, places)
  const { pid, link } = await restartDaemon(context, places, status)
  await out.result({ restarted: true, pid, link: link.state }, { look: 'device restart' })
}

async function drain({ out, world }: CommandContext, places: DevicePlaces): Promise<void> {
  const giveUpAt = world.monotonic() + drainMs
  let said = ''
  for (;;) {
    const { runs } = await askDaemon(places, { op: 'drain', on: true })
    if (runs.length === 0) return
    const now = runs.map((run) => run.runId).join(', ')
    if (now !== said) out.message(`svc: waiting for ${now}`)
    said = now
    if (world.monotonic() >= giveUpAt) {
      out.message('svc: 30 minutes are over; the runs that are left go on under the new device manager.')
      return
    }
    await world.sleep(pollMs)
  }
}
