import { dirname } from 'node:path'
import { parseArgs } from 'node:util'
import { z } from 'zod'
import { optimizeNothing } from '../../shared/lib/v8.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { bootId, startTimeOf } from '../process/identity.ts'
import { closeInheritedFiles } from '../process/inherited-files.ts'
import { RunHost } from './host.ts'
import { spoolOpener } from './host-spool.ts'
import { messageOf, stderrLog } from '../log/host-log.ts'
import type { HostRecord } from './wire/protocol.ts'
import { hostPaths, makeShortFolder, removeHostFiles, writeHostRecord } from './wire/record.ts'
import { HostSocket } from './wire/socket.ts'
import { StateFolder, tellSystem } from './state-folder.ts'
import { hostPurposes } from './wire/node-flags.ts'
import { warmUp } from './warm-up.ts'
import { writerLimits } from './output/writer-options.ts'

const count = z.coerce.number().int().positive()
const settings = z.object({
  'state-dir': z.string().min(1),
  'host-id': z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
  purpose: z.enum(hostPurposes).default('spare'),
  /** Limits of the spool and of output that is not acknowledged; the daemon passes its configuration on. */
  'spool-pages': count.optional(),
  'unsent-bytes': count.default(writerLimits.unsentBytes),
  /** The time that a host which has not started waits for a daemon. */
  'lonely-ms': count.default(120_000),
  /** The time that a harness which has given its result may take to exit. */
  'exit-grace-ms': count.default(30_000),
  /** A terminal in which nothing was printed for this long is looked at: does a program wait for it? */
  'quiet-terminal-ms': count.default(20_000),
  /** The time in which a state folder that is gone may come back. */
  'folder-back-ms': count.default(60_000),
})

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      'state-dir': { type: 'string' },
      'host-id': { type: 'string' },
      purpose: { type: 'string' },
      'spool-pages': { type: 'string' },
      'unsent-bytes': { type: 'string' },
      'lonely-ms': { type: 'string' },
      'exit-grace-ms': { type: 'string' },
      'quiet-terminal-ms': { type: 'string' },
      'folder-back-ms': { type: 'string' },
    },
  })
  const options = settings.parse(values)
  const hostId = options['host-id']
  const world = realWorld
  const log = stderrLog(world, hostId)
  const paths = hostPaths(options['state-dir'], hostId)

  const host = new RunHost({
    world,
    log,
    stateDir: options['state-dir'],
    hostId,
    openSpool: spoolOpener(paths.spool, options['spool-pages']),
    writerLimits: { ...writerLimits, unsentBytes: options['unsent-bytes'] },
    lonelyMs: options['lonely-ms'],
    exitGraceMs: options['exit-grace-ms'],
    quietTerminalMs: options['quiet-terminal-ms'],
    reply: (message) => socket.reply(message),
    spooled: (lastSeq) => socket.spooled(lastSeq),
    record: (run) => keepRecord(run),
    leave: (exitCode, hangs) => void leave(exitCode, hangs),
  })
  const socket = new HostSocket({
    path: paths.socket,
    log,
    hello: () => host.hello(),
    onConnect: () => {
      host.daemonCame()
      if (options.purpose === 'run') host.openAhead()
    },
    onRequest: (request) => host.onRequest(request),
    onDisconnect: () => host.daemonLeft(),
  })
  let isFolderGone = false
  const folder = new StateFolder({
    path: options['state-dir'],
    world,
    backMs: options['folder-back-ms'],
    onGone: () => {
      isFolderGone = true
      host.folderGone()
    },
    onGivenUp: () => host.giveUp(),
  })
  const own: HostRecord = {
    hostId,
    pid: process.pid,
    startTime: startTimeOf(process.pid) ?? '',
    bootId: bootId(),
    socket: paths.socket,
    stateDir: options['state-dir'],
    runId: null,
    fence: null,
    harness: null,
  }
  const keepRecord = (change: Partial<HostRecord>) => {
    try {
      writeHostRecord(paths, Object.assign(own, change))
    } catch (error) {
      // A full disk must not stop a harness that runs: its mark is in its environment as well.
      log('record_failed', { error: messageOf(error) })
    }
  }
  const leave = async (exitCode: number, hangs: boolean) => {
    optimizeNothing()
    await socket.close()
    if (isFolderGone && exitCode !== 0) await tellSystem(leaving(own))
    removeHostFiles(paths)
    if (hangs) process.kill(process.pid, 'SIGKILL')
    process.exit(exitCode)
  }

  process.on('uncaughtException', (error) => {
    log('uncaught', { error: error.stack ?? messageOf(error) })
    process.exit(70)
  })
  // The daemon's terminal or service is not this process's: it leaves when its run has ended.
  for (const signal of ['SIGHUP', 'SIGINT'] as const) process.on(signal, () => {})
  process.on('SIGTERM', () => {
    if (!folder.giveUpIfGone()) host.stop('crashed', 'The run host was told to stop, as when the machine shuts down.')
  })

  if (dirname(paths.socket) !== paths.hosts) makeShortFolder(options['state-dir'])
  await socket.listen()
  // The record is durable: a daemon that finds none takes it that the host left in order.
  writeHostRecord(paths, own, { isDurable: true })
  // The daemon holds the other end: its death shows here even when it came before the daemon had connected.
  process.stdin
    .on('error', () => host.daemonEnded())
    .on('close', () => host.daemonEnded())
    .resume()
    .unref()
  host.daemonLeft()
  folder.watch()
  host.tryAhead()
  // The daemon of a run that waits may not have made the spool yet. When it connects, it has.
  if (options.purpose === 'run') return
  host.openAhead()
  await warmUp({ world, log, stateDir: options['state-dir'], hostId })
  if (options.purpose === 'rehearsal') await leave(0, false)
}

function leaving({ hostId, runId, stateDir, pid }: HostRecord): string {
  const run = runId === null ? 'It had started no run.' : `The end of run ${runId} could not be recorded.`
  return `run host ${hostId} (pid ${pid}) leaves, since the folder ${stateDir} is gone. ${run}`
}

// libuv before 1.52 loses the end of a terminal's output when the program exits.
const [major = 0, minor = 0] = (process.versions['uv'] ?? '').split('.').map(Number)
if (major < 1 || (major === 1 && minor < 52)) {
  process.stderr.write(
    `The run host needs libuv 1.52 or newer; this is Node ${process.version} with libuv ${process.versions['uv']}.\n`,
  )
  process.exit(78)
}
closeInheritedFiles()
// No `await` here: it is written as CommonJS (scripts/build.ts).
void main()
