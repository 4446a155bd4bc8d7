import type { ControlStatus } from '../../../shared/device/control.ts'
import type { DeviceIdentity } from '../../../shared/device/device-identity.ts'
import type { Flow } from '../../context/context.ts'
import { askDaemonIfThere } from '../../device/daemon-control.ts'
import { exitStatus } from '../../errors/exit-codes.ts'
import { brokenLines } from '../../output/broken-lines.ts'
import type { Output } from '../../output/output.ts'
import { relativeTime } from '../../output/times.ts'
import { deviceProblems, serviceState, type Problem } from '../../device/device-problems.ts'
import { devicePlaces } from '../../machine/paths.ts'
import { readIdentity } from '../../device/this-device.ts'

/** `device status`: shows the daemon's own report, and each problem with the command that fixes it. */
export const deviceStatus: Flow = async (context) => {
  const { out, env } = context
  const places = await devicePlaces(env)
  const identity = readIdentity(places)
  const status = await askDaemonIfThere(places, { op: 'status' })
  const service = await serviceState(places)
  const problems = [...deviceProblems(places, identity, status), ...service.problems]
  if (out.format === 'json')
    await out.result({
      running: status !== null,
      identity,
      ...(status && withTimes(status)),
      ...service.facts,
      problems,
    })
  else out.text(asText(identity, status, { problems, out, now: context.world.now() }))
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

interface Shown {
  problems: readonly Problem[]
  out: Pick<Output, 'isTerminal' | 'width'>
  now: number
}

/** What goes on is below the words of its line. */
const hang = 10

function asText(identity: DeviceIdentity | null, status: ControlStatus | null, { problems, out, now }: Shown): string {
  const timeOf = (ms: number) => {
    const text = new Date(ms).toISOString()
    return out.isTerminal ? relativeTime(text, now) : text
  }
  const lines: string[] = []
  const who = status ?? identity
  if (who !== null) lines.push(`device    ${who.displayName} (${who.publicId}) of ${who.server}`)
  if (status !== null) {
    const since = status.link.since === null ? '' : `, since ${timeOf(status.link.since)}`
    lines.push(`daemon    pid ${status.pid}, version ${status.version}, started ${timeOf(status.startedAt)}`)
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
      lines.push(`harness   ${name.padEnd(9)} ${installed ? (version ?? 'installed') : `not installed${why}`}`)
    }
    for (const { harness, resetsAt } of status.limits ?? [])
      lines.push(`limit     ${harness}'s account is used up until ${timeOf(resetsAt)}`)
    if (status.service !== null) lines.push(`service   ${status.service.installed ? 'installed' : 'not installed'}`)
  }
  for (const problem of problems) lines.push(`problem   ${problem.message}`, `          type: ${problem.fix}`)
  const text = lines.join('\n')
  return out.isTerminal ? brokenLines(text, out.width, undefined, hang) : text
}
