import { plainHarness } from '../../shared/runs/harnesses.ts'
import type { ControlStatus } from '../../shared/device/control.ts'
import type { DeviceIdentity } from '../../shared/device/device-identity.ts'
import { CliError } from '../errors/cli-error.ts'
import type { DevicePlaces } from '../machine/paths.ts'
import { serviceOfThisDevice } from './service-program.ts'
import { refusalOf } from './this-device.ts'

/** What is wrong with this machine's device. `fix`: what to type or do. */
export interface Problem {
  message: string
  fix: string
}

/** Finds what is wrong with the device manager, its link, its wall and its harnesses. `status`: null where no daemon answers. */
export function deviceProblems(
  places: DevicePlaces,
  identity: DeviceIdentity | null,
  status: ControlStatus | null,
): Problem[] {
  const refusal = identity === null || status?.link.state === 'connected' ? null : refusalOf(places)
  return refusal === null ? problemsOf(identity, status) : [refusedProblem(identity!, refusal, status)]
}

/** A service check that fails is a problem of its own; the rest of the status is still useful. */
export async function serviceState(places: DevicePlaces): Promise<{ facts: object; problems: readonly Problem[] }> {
  try {
    const service = await serviceOfThisDevice(places)
    if (service === null) return { facts: {}, problems: [] }
    const { problems, ...facts } = service
    return { facts: { service: facts }, problems }
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    return { facts: {}, problems: [{ message: error.message, fix: error.remediation ?? 'svc device install-service' }] }
  }
}

/** Of all that a server may say, only an unknown token may be the doing of nobody: its database is older than the token. */
function refusedProblem(
  { server }: DeviceIdentity,
  { reason, text }: { reason: string; text: string },
  status: ControlStatus | null,
): Problem {
  const restored =
    reason === 'auth_failed' ? ' It may have been restored from a backup that is older than this device.' : ''
  const what =
    status === null
      ? `The device manager ended, since ${server} refused it: ${text}`
      : `${server} refuses this device: ${text} Its live runs go on for an hour at most.`
  return { message: `${what}${restored}`, fix: 'svc device connect' }
}

function problemsOf(identity: DeviceIdentity | null, status: ControlStatus | null): Problem[] {
  if (identity === null && status === null)
    return [{ message: 'This machine is not a device.', fix: 'svc device connect' }]
  if (status === null) return [{ message: 'The device manager does not run.', fix: 'svc device connect' }]
  const problems: Problem[] = []
  if (status.link.state !== 'connected') {
    const why = status.link.lastError === null ? '' : ` ${status.link.lastError}`
    problems.push({ message: `There is no link to ${status.server}.${why}`, fix: 'svc device logs' })
  }
  const reasons: Record<string, Problem> = {
    disk_full: { message: 'The disk is full, so no run is taken.', fix: 'Free some space.' },
    spool_unavailable: { message: 'The spool cannot be written, so no run is taken.', fix: 'svc device logs' },
    draining: {
      message: 'The device takes no new runs, since it is to be restarted or was removed.',
      fix: 'svc device restart',
    },
    paused: {
      message: 'The device takes no runs: its remote control was revoked.',
      fix: 'svc device set --no-remote-control-revoked',
    },
  }
  const reason = status.accepting || status.reason === null ? undefined : reasons[status.reason]
  if (reason !== undefined) problems.push(reason)
  return [...problems, ...isolationProblems(status), ...readinessProblems(status)]
}

function isolationProblems({ isolation }: ControlStatus): Problem[] {
  if (isolation.level === 'full') return []
  const why = isolation.message === null ? '' : ` ${isolation.message}`
  if (isolation.level === 'partial') {
    const message = `Runs are walled off from svc and from other processes in part only.${why}`
    return [{ message, fix: 'Read docs/isolation.md.' }]
  }
  return [
    {
      message: `Nothing keeps a run on this machine from the folders and processes of svc.${why}`,
      fix: 'svc device set --isolation svc',
    },
  ]
}

function readinessProblems({ readiness }: ControlStatus): Problem[] {
  if (readiness === null) return []
  const all = Object.entries(readiness.harnesses)
  const programs = all.filter(([name]) => name !== plainHarness)
  if (programs.length > 0 && programs.every(([, harness]) => !harness.installed)) {
    return [
      {
        message: 'No agent program is installed.',
        fix: 'Install one, for example Claude Code, then: svc device refresh',
      },
    ]
  }
  return all.flatMap(([name, harness]) => {
    if (!harness.installed) return []
    if (harness.tooOld === true)
      return [{ message: harness.message ?? `${name} is too old.`, fix: `Update ${name}, then: svc device refresh` }]
    if (harness.signedIn !== false) return []
    return [
      { message: harness.message ?? `${name} is not signed in.`, fix: `Sign in to ${name}, then: svc device refresh` },
    ]
  })
}
