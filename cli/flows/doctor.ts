import { access, constants, statfs } from 'node:fs/promises'
import type { ControlStatus } from '../../shared/device/control.ts'
import type { DeviceIdentity } from '../../shared/device/device-identity.ts'
import { version } from '../../shared/lib/version.ts'
import type { Client } from '../calls/client.ts'
import type { CommandContext, Flow } from '../context/context.ts'
import { askDaemonIfThere } from '../device/daemon-control.ts'
import { sessionVerdict } from '../device/login-session.ts'
import { deviceProblems, serviceState } from '../device/device-problems.ts'
import { readIdentity } from '../device/this-device.ts'
import { ApiFailure, CliError } from '../errors/cli-error.ts'
import { exitStatus } from '../errors/exit-codes.ts'
import { devicePlaces, type DevicePlaces } from '../machine/paths.ts'
import { brokenLine } from '../output/broken-lines.ts'
import type { Tone } from '../output/colours.ts'
import type { Output } from '../output/output.ts'
import { listAt, textAt } from '../replies/fields.ts'

/** `ok`: as it should be. `warning`: it works, but not as well as it could. `failed`: something does not work. */
type Verdict = 'ok' | 'warning' | 'failed'

interface Finding {
  /** What was looked at. */
  check: string
  verdict: Verdict
  message: string
  /** What to type or do; null where nothing is to be done. */
  fix: string | null
}

const gib = 1024 ** 3
/** With less room than `warnBytes` a run may fill the disk; below `failBytes` the device manager takes none. */
const room = { warnBytes: 2 * gib, failBytes: gib / 4 }
/** Clocks may lie so far apart. Run tokens and leases of the server count by its own. */
const skew = { warnMs: 30_000, failMs: 5 * 60_000 }

/** A server that takes longer for a small answer is slow, or far away. */
const slowMs = 2_000

/** `doctor`: looks at this machine, its login and its server, and tells of each trouble what to do. */
export const doctor: Flow = async (context) => {
  const places = await devicePlaces(context.env)
  const identity = readIdentity(places)
  const status = await askDaemonIfThere(places, { op: 'status' })
  const { client, findings: ofLogin } = await loginFindings(context)
  const findings = [
    programFinding(),
    ...ofLogin,
    ...(client === null ? [] : await serverFindings(context, client)),
    ...versionFindings('device manager', status?.version ?? null, 'svc device restart'),
    ...(await deviceFindings(places, identity, status)),
    ...(client === null ? [] : await folderFindings(client, identity)),
    ...(await diskFindings(places)),
    ...(await certificateFindings()),
  ]
  const isWell = findings.every(({ verdict }) => verdict !== 'failed')
  const { out } = context
  if (out.format === 'json') await out.result({ ok: isWell, findings })
  else out.text(asText(findings, out))
  return isWell ? 0 : exitStatus('refused')
}

const ok = (check: string, message: string): Finding => ({ check, verdict: 'ok', message, fix: null })
const found = (check: string, verdict: Verdict, message: string, fix: string | null): Finding => ({
  check,
  verdict,
  message,
  fix,
})

const programFinding = (): Finding =>
  ok('svc', `svc ${version}, Node ${process.versions.node}, ${process.platform} ${process.arch}`)

/** Without a login nothing can be asked of the server. */
async function loginFindings(context: CommandContext): Promise<{ client: Client | null; findings: Finding[] }> {
  try {
    return { client: await context.connect(), findings: [] }
  } catch (error) {
    return { client: null, findings: [failure('login', error, 'svc login')] }
  }
}

function failure(check: string, error: unknown, fix: string): Finding {
  if (!(error instanceof CliError)) throw error
  return found(check, 'failed', error.message, error.remediation ?? fix)
}

/** Whether the server answers, takes the login, and has the time that this machine has. */
async function serverFindings({ world }: CommandContext, client: Client): Promise<Finding[]> {
  const { server } = client.caller
  const began = world.now()
  try {
    const { headers, body } = await client.call({ method: 'GET', path: '/api/v1/workspaces' })
    const tookMs = world.now() - began
    return [
      tookMs < slowMs
        ? ok('server', `${server} answers`)
        : found('server', 'warning', `${server} took ${(tookMs / 1_000).toFixed(1)} seconds to answer.`, null),
      ok(
        'login',
        `the workspace ${textAt(body, 'name') ?? textAt(body, 'slug') ?? ''} takes the login of this machine`,
      ),
      ...clockFindings(Date.parse(String(headers['date'])), { began, ended: world.now() }),
      ...(await serverVersionFindings(await releaseOf(client), server)),
    ]
  } catch (error) {
    if (error instanceof ApiFailure && error.status === 401)
      return [ok('server', `${server} answers`), found('login', 'failed', error.message, 'svc login')]
    return [failure('server', error, `Look whether ${server} runs and is reached from here.`)]
  }
}

/** null: a server that does not say it, or not to an agent. */
async function releaseOf(client: Client): Promise<string | null> {
  const { status, body } = await client.send({ method: 'GET', path: '/api/auth/me' })
  return status === 200 ? textAt(body, 'release') : null
}

/** A server's clock tells whole seconds, at some time between both ends of the call. */
function clockFindings(serverMs: number, { began, ended }: { began: number; ended: number }): Finding[] {
  if (Number.isNaN(serverMs)) return []
  const apartMs = Math.max(0, began - (serverMs + 1_000), serverMs - ended)
  const apart = `The clocks of this machine and of the server lie ${Math.round(apartMs / 1_000)} seconds apart.`
  if (apartMs < skew.warnMs) return [ok('clock', 'it goes with the clock of the server')]
  const verdict = apartMs < skew.failMs ? 'warning' : 'failed'
  return [found('clock', verdict, apart, 'Have the system set its clock, for example: timedatectl set-ntp true')]
}

async function serverVersionFindings(its: string | null, server: string): Promise<Finding[]> {
  // Imported here: most servers are of the same version.
  const isNewer = its !== null && its !== version && (await import('semver')).gt(its, version)
  const fix = isNewer ? 'svc upgrade' : `Upgrade svc on the machine of ${server}, then restart the server.`
  return versionFindings('server', its, fix)
}

function versionFindings(program: string, its: string | null, fix: string): Finding[] {
  if (its === null || its === version) return []
  return [found('versions', 'warning', `The ${program} is of release ${its}, this svc of ${version}.`, fix)]
}

async function deviceFindings(
  places: DevicePlaces,
  identity: DeviceIdentity | null,
  status: ControlStatus | null,
): Promise<Finding[]> {
  // A machine from which somebody only calls need be no device.
  if (identity === null && status === null)
    return [found('device', 'warning', 'This machine is not a device: no run is taken here.', 'svc device connect')]
  const service = await serviceState(places)
  const own = deviceProblems(places, identity, status)
  const verdict = status === null || status.link.state !== 'connected' ? 'failed' : 'warning'
  const troubles = [...own, ...service.problems].map(({ message, fix }) => found('device', verdict, message, fix))
  if (status === null) return troubles
  const { runs, capacity, link } = status
  const linked = link.state === 'connected' ? [ok('device', `linked, ${runs.length} of ${capacity} runs`)] : []
  return [...linked, ...troubles, ...harnessFindings(status), ...serviceFinding(status), ...sessionFinding(status)]
}

const harnessFindings = ({ readiness }: ControlStatus): Finding[] =>
  Object.entries(readiness?.harnesses ?? {})
    .filter(
      ([, { installed, version: its, tooOld, signedIn }]) => installed && its !== null && !tooOld && signedIn !== false,
    )
    .map(([name, { version: its }]) => ok('harness', `${name} ${its}`))

function serviceFinding({ service }: ControlStatus): Finding[] {
  if (service === null) return []
  if (service.installed) return [ok('service', 'the system keeps the device manager running')]
  const message = 'Nothing starts the device manager again after a restart of this machine.'
  return [found('service', 'warning', message, 'svc device install-service')]
}

function sessionFinding(status: ControlStatus): Finding[] {
  const verdict = sessionVerdict(status)
  return verdict === null ? [] : [{ check: 'certs', ...verdict }]
}

/** The folders of this device, as it told the server of them last. */
async function folderFindings(client: Client, identity: DeviceIdentity | null): Promise<Finding[]> {
  if (identity === null) return []
  const { status, body } = await client.send({ method: 'GET', path: '/api/v1/folders' })
  // An agent in its run may not list them.
  if (status !== 200) return []
  const own = listAt(body, 'sources').filter((folder) => textAt(folder, 'config', 'deviceId') === identity.publicId)
  const bad = own.filter((folder) => !['ok', 'device_disconnected'].includes(textAt(folder, 'state') ?? 'ok'))
  const good = own.length - bad.length
  const troubles = bad.map((folder) => {
    const [id, path, state] = [textAt(folder, 'shortId'), textAt(folder, 'config', 'rootPath'), textAt(folder, 'state')]
    const message = `The folder ${textAt(folder, 'displayName')} (${path}) cannot be used: ${state?.replaceAll('_', ' ')}.`
    return found('folder', 'failed', message, `Mend the path, then: svc device refresh. Or: svc folder remove ${id}`)
  })
  return [...(good === 0 ? [] : [ok('folders', `${good} can be used`)]), ...troubles]
}

/** The room where the spool and the state of the device manager lie. */
async function diskFindings({ dir }: DevicePlaces): Promise<Finding[]> {
  try {
    const { bavail, bsize } = await statfs(dir)
    const free = bavail * bsize
    const told = `${(free / gib).toFixed(1)} GiB are free at ${dir}`
    if (free >= room.warnBytes) return [ok('disk', told)]
    return [found('disk', free < room.failBytes ? 'failed' : 'warning', `Only ${told}.`, 'Free some space.')]
  } catch {
    // The folder is made with the device.
    return []
  }
}

/** Node passes over a file of certificates that it cannot read, and then trusts no server with a certificate from it. */
async function certificateFindings(): Promise<Finding[]> {
  const file = process.env['NODE_EXTRA_CA_CERTS']
  if (file === undefined || file === '') return []
  try {
    await access(file, constants.R_OK)
    return [ok('certs', `those of ${file} are trusted, too`)]
  } catch {
    const message = `NODE_EXTRA_CA_CERTS names ${file}, which cannot be read.`
    return [found('certs', 'warning', message, 'Name a file in PEM form that is there, or unset the variable.')]
  }
}

const marks: Readonly<Record<Verdict, readonly [mark: string, tone: Tone]>> = {
  ok: ['✓', 'good'],
  warning: ['!', 'waits'],
  failed: ['✗', 'bad'],
}

/** Below the words of a finding. */
const hang = ' '.repeat(12)

function asText(findings: readonly Finding[], { paint, width }: Pick<Output, 'paint' | 'width'>): string {
  const lines = findings.flatMap(({ check, verdict, message, fix }) => {
    const [mark, tone] = marks[verdict]
    const [first = '', ...more] = brokenLine(message, width - hang.length)
    const lines = [`${paint(mark, tone)} ${check.padEnd(9)} ${first}`, ...more.map((line) => hang + line)]
    if (fix === null) return lines
    const [begin = '', ...rest] = brokenLine(fix, width - hang.length - 2)
    return [...lines, `${hang}${paint('→', 'dim')} ${begin}`, ...rest.map((line) => `${hang}  ${line}`)]
  })
  const bad = findings.filter(({ verdict }) => verdict === 'failed').length
  const odd = findings.filter(({ verdict }) => verdict === 'warning').length
  const sum = bad + odd === 0 ? 'All is well.' : `${count(bad, 'failure')}, ${count(odd, 'warning')}.`
  return [...lines, '', sum].join('\n')
}

const count = (number: number, what: string) => `${number} ${what}${number === 1 ? '' : 's'}`
