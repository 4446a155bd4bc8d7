import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { HostRecord } from '../../device-manager/run-host/wire/protocol.ts'
import { takeFiles, whyNoFileLimit } from '../kit/file-limit.ts'
import { checkInvariants } from '../kit/invariants.ts'
import { manyProcessors } from '../kit/many-processors.ts'
import { waitFor } from '../kit/programs.ts'
import type { TestDevice } from '../kit/system-device.ts'
import { TestSystem } from '../kit/system.ts'
import { printedLines, scenario } from '../kit/system-scenario.ts'

// Fault matrix, row 46: a daemon or a server that may open no further file, and so start no program and take no connection.

const why = whyNoFileLimit()
if (why !== null) process.stderr.write(`NOT RUN: ${why}, so no program was ever without files\n`)

describe.skipIf(why !== null)('without a file left', () => {
  let system: TestSystem
  beforeAll(async () => {
    system = await TestSystem.start({ device: { isWalled: true }, deviceEnv: manyProcessors })
  })
  afterAll(() => system?.stop())

  const steps = ['lines=100', 'touch=GATES/up', 'await=GATES/on', 'lines=100']
  const output = printedLines(200)

  test('the daemon goes on with its runs, ends what it cannot start, and takes new ones when there are files again; the server takes no connection, keeps those it has, and takes them again', async () => {
    const { device } = system
    const { pid } = device.program
    const [live, taken, later] = await Promise.all([
      scenario(system, { steps }),
      scenario(system, { steps: ['lines=50'] }),
      scenario(system, { steps }),
    ])
    const liveId = await live.start()
    await live.reached('up')
    await waitFor(() => device.hosts().some((host) => host.runId === null && isConnected(host)), 'a spare run host')
    const giveBack = await takeFilesAtRest(device)
    // By the host that stands by; there is none for the next one.
    const takenId = await taken.start()
    const ended = await system.api.waitForRun(takenId, 'succeeded')
    expect(ended.exitReason).toBe('completed')
    // What the daemon closed since left room for a few others, perhaps for one more host that stands by: it takes one run.
    const { refused, refusedId } = await untilRefused()
    // The person's shell is asked for its environment behind each run, where a wall can be made behind one.
    const isRefused = () => /no room to start|wall around the run could not be made by \w+: .*EMFILE/.test(device.log)
    await waitFor(isRefused, 'the shell cannot be asked', {
      about: () => device.log,
    })
    live.open('on')
    await system.api.waitForRun(liveId, 'succeeded')
    giveBack()
    await checkInvariants(system, live, liveId, { exitReason: 'completed', output })
    await checkInvariants(system, taken, takenId, { exitReason: 'completed', output: printedLines(50) })
    await checkInvariants(system, refused, refusedId, { exitReason: 'dispatch_error', starts: 0, hasChangeSet: false })
    const laterId = await later.start()
    await later.reached('up')
    expect(await device.status()).toMatchObject({ pid, accepting: true, reason: null })
    await withoutFilesForTheServer(() => later.open('on'))
    await checkInvariants(system, later, laterId, { exitReason: 'completed', output })
    expect(await device.status()).toMatchObject({ pid, accepting: true, reason: null })
  })

  async function untilRefused() {
    for (let count = 0; count < 5; count++) {
      const refused = await scenario(system, { steps: ['lines=50'] })
      await takeFilesAtRest(system.device)
      const refusedId = await refused.start()
      const isOver = async () => {
        const run = await system.api.run(refusedId)
        return run.status === 'succeeded' || run.status === 'failed' ? run : null
      }
      const { status, exitReason } = await waitFor(isOver, 'the run is over')
      if (status === 'failed') {
        expect(exitReason).toBe('dispatch_error')
        return { refused, refusedId }
      }
      expect(exitReason).toBe('completed')
    }
    throw new Error('a daemon without files takes one run after another')
  }

  /** While it has none, the run goes on to its end, and all of it is sent. */
  async function withoutFilesForTheServer(goOn: () => void): Promise<void> {
    const { server } = system
    const { pid } = server.program
    const giveBack = takeFiles(pid)
    // What it closed since left room for others.
    const isFull = async () => {
      takeFiles(pid)
      return !(await isAnswered(`${server.url}/healthz`))
    }
    await waitFor(isFull, 'no connection is taken')
    goOn()
    await waitFor(async () => (await system.device.spoolRuns()).length === 0, 'the events and the ending are sent')
    giveBack()
    expect(server.program.pid).toBe(pid)
    expect(server.isRunning).toBe(true)
  }

  test('the server goes on where the system does not tell how much memory it holds', async () => {
    const program = `
      import { IdleMemory } from ${JSON.stringify(join(import.meta.dirname, '../../control-plane/process/idle-memory.ts'))}
      const ticks = []
      const memory = new IdleMemory({ world: { after: (_ms, run) => (ticks.push(run), () => undefined) } })
      memory.start()
      process.stdin.once('data', () => {
        ticks.at(-1)()
        process.stdout.write(String(ticks.length))
        process.exit()
      })
      process.stdout.write('up ')`
    const child = execa(process.execPath, [
      '--disable-warning=ExperimentalWarning',
      '--input-type=module',
      '-e',
      program,
    ])
    await once(child.stdout, 'data')
    takeFiles(child.pid!)
    child.stdin.end('go')
    expect((await child).stdout).toBe('up 2')
  })
})

/** Takes them while the daemon has no program but its hosts: the pipes of one, once it ends, would leave room for others. */
async function takeFilesAtRest(device: TestDevice): Promise<() => void> {
  const { pid } = device.program
  const isAtRest = () => {
    const hosts = new Set(device.hosts().map((host) => host.pid))
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean)
    return children.every((child) => hosts.has(Number(child)))
  }
  return waitFor(() => {
    if (!isAtRest()) return null
    const giveBack = takeFiles(pid)
    // One that was started in between counts as well.
    return isAtRest() ? giveBack : (giveBack(), null)
  }, 'the daemon is at rest')
}

/** The daemon has reached it: a host that is only there could not be reached any more without a file. */
function isConnected({ socket }: HostRecord): boolean {
  const sockets = readFileSync('/proc/net/unix', 'utf8').split('\n')
  const connected = '03'
  return sockets.some((line) => line.endsWith(` ${socket}`) && line.trim().split(/\s+/)[5] === connected)
}

async function isAnswered(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(2_000), headers: { connection: 'close' } })
    return response.ok
  } catch {
    return false
  }
}
