import { plainHarness } from '../../../shared/runs/harnesses.ts'
import type { ControlStatus } from '../../../shared/device/control.ts'
import type { DeviceIdentity } from '../../../shared/device/device-identity.ts'
import type { Flow } from '../../context/context.ts'
import { askDaemonIfThere } from '../../device/daemon-control.ts'
import { CliError } from '../../errors/cli-error.ts'
import { exitStatus } from '../../errors/exit-codes.ts'
import { devicePlaces, type DevicePlaces } from '../../machine/paths.ts'
import { serviceOfThisDevice } from '../../device/service-program.ts'
import { readIdentity, refusalOf } from '../../device/this-device.ts'

interface Problem {
  message: string
  fix: string
}

/** `device status`: shows the daemon's own report, and each problem with the command that fixes it. */
export const deviceStatus: Flow = async (context) => {
  const { out, env } = context
  const places = await devicePlaces(env)
  const identity = readIdentity(places)
  const status = await askDaemonIfThere(places, { op: 'status' })
  const service = await serviceState(places)
  const refusal = identity === null || status?.link.state === 'connected' ? null : refusalOf(places)
  const own = refusal === null ? problemsOf(identity, status) : [refusedProblem(identity!, refusal, status)]
  const problems = [...own, ...service.problems]
  if (out.format === 'json')
    await out.result({
      running: status !== null,
      identity,
      ...(status && withTimes(status)),
      ...service.facts,
      problems,
    })
  else out.text(asText(identity, status, problems))
  return status === null ? exitStatus('no_daemon') : 0
}

const iso = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString())

/** The daemon counts milliseconds; this shows times as the API writes them. */
function withTimes(status: ControlStatus) {
  return {
    ...status,
    startedAt: iso(status.startedAt),
    link: { ...status.link, since: iso(status.link.since) },
    runs: status.runs.map((run) => ({ ...run, startedAt: iso(run.startedAt) })),
    limits: status.limits?.map((limit) => ({ ...limit, resetsAt: iso(limit.resetsAt) })),
  }
}

/** A service check that fails is a problem of its own; the rest of the status is still useful. */
async function serviceState(places: DevicePlaces): Promise<{ facts: object; problems: readonly Problem[] }> {
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

function asText(identity: DeviceIdentity | null, status: ControlStatus | null, problems: readonly Problem[]): string {
  const lines: string[] = []
  const who = status ?? identity
  if (who !== null) lines.push(`device    ${who.displayName} (${who.publicId}) of ${who.server}`)
  if (status !== null) {
    const since = status.link.since === null ? '' : ` since ${new Date(status.link.since).toISOString()}`
    lines.push(
      `daemon    pid ${status.pid}, version ${status.version}, started ${new Date(status.startedAt).toISOString()}`,
    )
    lines.push(`link      ${status.link.state}${since}`)
    lines.push(
      `runs      ${status.runs.length} of ${status.capacity}${status.accepting ? '' : `, takes no more (${status.reason})`}`,
    )
    for (const run of status.runs) lines.push(`          ${run.runId}  ${run.state}  ${run.agent ?? ''}`.trimEnd())
    const { level, tool } = status.isolation
    lines.push(`isolation ${level}${tool === null ? '' : ` (${tool})`}`)
    lines.push(`spool     ${status.spool.rows} events, ${status.spool.bytes} bytes not acknowledged`)
    for (const [name, { installed, version, message }] of Object.entries(status.readiness?.harnesses ?? {})) {
      const why = message === null ? '' : `: ${message}`
      lines.push(`harness   ${name}  ${installed ? (version ?? 'installed') : `not installed${why}`}`)
    }
    for (const { harness, resetsAt } of status.limits ?? [])
      lines.push(`limit     ${harness}'s account is used up until ${new Date(resetsAt).toISOString()}`)
    if (status.service !== null) lines.push(`service   ${status.service.installed ? 'installed' : 'not installed'}`)
  }
  for (const problem of problems) lines.push(`problem   ${problem.message}`, `          type: ${problem.fix}`)
  return lines.join('\n')
}
