import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RunEvent } from '../../shared/api/run-events.ts'
import { seededRandom, waitFor } from '../kit/programs.ts'
import { makeRepo, printedLines, scenario } from '../kit/system-scenario.ts'
import { TestSystem } from '../kit/system.ts'
import { attacksOn } from './unkillable-attacks.ts'

/**
 * The whole system, a run that works and runs that attack, started by unkillable.test.ts in namespaces of its own: whatever
 * breaks here ends here. The last line of its output is what it saw.
 */
const count = Number(process.env['UNKILLABLE'])
const perRun = 8
/** Longer than any attack is given. */
const quietMs = 8_000

const random = seededRandom('unkillable')
const problems: string[] = []
const check = (isSo: boolean, what: string) => void (isSo || problems.push(what))

const system = await TestSystem.start({ deviceEnv: { SVC_LOG_LEVEL: 'warn' }, device: { isWalled: true } })
const { api, device, server } = system
const daemon = device.program.pid
const targets = { root: system.root, stateDir: device.stateDir, dataDir: server.dataDir }
await waitFor(async () => (await device.status()).isolation.choice === 'svc', 'the wall stands')

const neighbour = await scenario(system, { steps: ['lines=50', 'touch=GATES/up', 'await=GATES/go', 'lines=50'] })
const neighbourRun = await neighbour.start()
await neighbour.reached('up')
const neighbourHost = await device.hostOf(neighbourRun)

// The disk that is filled is the attacker's folder alone.
const folder = join(system.root, 'attacked')
mkdirSync(folder)
execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=16m', 'attacked', folder])
makeRepo(folder)
const { shortId } = await api.addFolder({ displayName: 'a', rootPath: folder, deviceId: device.identity.publicId })
const command = 'exec /bin/sh "$SVC_PROMPT_FILE"'
const attacker = await api.createAgent({ name: 'attacker', harness: 'command', defaultFolderId: shortId, command })
const { pid: serverPid } = JSON.parse(readFileSync(join(server.dataDir, 'server.json'), 'utf8')) as { pid: number }
const attacks = attacksOn({ ...targets, pids: [daemon, serverPid, neighbourHost.pid, neighbourHost.harness!.pid] })

let begun = 0
let runs = 0
while (begun < count && problems.length === 0) {
  const drawn = Array.from({ length: Math.min(perRun, count - begun) }, () => Math.floor(random() * attacks.length))
  const lines = drawn.map((number) => `echo begin ${number}\ntimeout 5 /bin/sh -c ${quote(attacks[number]!)}`)
  const runId = await api.startRun(attacker.id, `${lines.join('\n')}\n`)
  await ends(runId, `the run of attacks ${drawn.join()} ends`)
  const events = await api.events(runId)
  checkLog(events, `attacks ${drawn.join()}`)
  begun += Math.max(1, textOf(events).match(/^begin \d+\r?$/gm)?.length ?? 0)
  runs++
  check(device.isRunning && server.isRunning, `after attacks ${drawn.join()} the daemon or the server is gone`)
  check(
    device.hosts().some(({ hostId }) => hostId === neighbourHost.hostId),
    `attacks ${drawn.join()} hit the neighbour`,
  )
}

neighbour.open('go')
const ended = await api.waitForRun(neighbourRun, 'succeeded')
const events = await api.events(neighbourRun)
checkLog(events, 'the neighbour')
check(ended.exitReason === 'completed', `the neighbour ended as ${ended.exitReason}`)
check(textOf(events) === printedLines(100), 'output of the neighbour is lost')
check(neighbour.starts(neighbourRun) === 1, 'the neighbour was started again')
const status = await device.status()
check(status.pid === daemon && status.link.state === 'connected', 'the daemon was replaced')
check(status.isolation.choice === 'svc', 'the wall was taken away')
await waitFor(async () => (await device.spoolRuns()).length === 0, 'all events are acknowledged')
execFileSync('umount', [folder])
await system.stop()
process.stdout.write(`${JSON.stringify({ problems, begun, runs })}\n`)

/** One that has stopped all of its own processes does nothing more: a person cancels it, which must work as well. */
async function ends(runId: string, what: string): Promise<void> {
  let seen = 0
  let since = performance.now()
  let isCancelled = false
  const ask = async () => {
    if ((await api.run(runId)).completedAt !== null) return true
    const { length } = await api.events(runId)
    if (length > seen) since = performance.now()
    seen = length
    if (!isCancelled && performance.now() - since > quietMs) {
      isCancelled = true
      await api.cancel(runId)
    }
    return false
  }
  await waitFor(ask, what, { ms: 120_000, everyMs: 200, about: () => device.log })
}

/** Each number once, and one ending at the end. */
function checkLog(events: readonly RunEvent[], whose: string): void {
  check(
    events.every(({ seq }, index) => seq === index + 1),
    `${whose}: events are missing`,
  )
  check(events.filter(({ kind }) => kind === 'ended').length === 1, `${whose}: no single ending`)
  check(events.at(-1)?.kind === 'ended', `${whose}: the ending is not the last event`)
}

function textOf(events: readonly RunEvent[]): string {
  const texts = events.filter(({ kind }) => kind === 'text')
  return texts.map(({ data }) => String(data['text'])).join('')
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
