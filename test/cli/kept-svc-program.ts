import { createRequire } from 'node:module'
import { PassThrough } from 'node:stream'
import { setFlagsFromString } from 'node:v8'
import type { KeptCall, KeptEnd } from './kept-svc.ts'

/**
 * The process of kept-svc.ts: runs the `main.js` that it is given anew for each call, while the modules that this loads stay. A call
 * that leaves something behind, which the exit of svc would have ended, ends this process.
 */
const program = process.argv[2]!
const require = createRequire(program)
const usualFolder = process.cwd()
/** It asks for the home folder once, when it is loaded. */
const takesHome = /\/env-paths-[^/]+\.js$/

const streams = [process.stdout, process.stderr]
const listenersOf = (stream: NodeJS.WriteStream) =>
  stream.eventNames().flatMap((name) => stream.listeners(name).map((listener) => ({ name, listener })))
const ownListeners = new Set(streams.flatMap(listenersOf).map(({ listener }) => listener))

/** What keeps the process alive, and who listens to it. */
const held = () =>
  [
    ...process.getActiveResourcesInfo(),
    ...process.eventNames().map((name) => `${String(name)}: ${process.listenerCount(name)}`),
  ]
    .toSorted()
    .join()

let calls = Promise.resolve()
process.on('message', (call: KeptCall) => {
  calls = calls.then(() => answer(call))
})
// The worker has ended, in whatever way. Whatever a call may still do ends with it.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))
const heldAtRest = held()

async function answer(call: KeptCall): Promise<void> {
  const status = await run(call)
  const isSpent = !(await isAtRest())
  for (const stream of streams)
    for (const { name, listener } of listenersOf(stream))
      if (!ownListeners.has(listener)) stream.removeListener(name, listener as () => void)
  process.chdir(usualFolder)
  const [stdout, stderr] = streams.map((stream) => stream.bytesWritten) as [number, number]
  await new Promise<void>((sent) => process.send!({ status, stdout, stderr, isSpent } satisfies KeptEnd, () => sent()))
  if (isSpent) process.kill(process.pid, 'SIGKILL')
}

/** Resolves with the status at the moment at which svc would exit. */
function run({ line, env, input, cwd }: KeptCall): Promise<number> {
  // The call before has turned it off (optimize-nothing.ts).
  for (const flag of ['--turbofan', '--maglev']) setFlagsFromString(flag)
  for (const name of Object.keys(process.env)) if (!(name in env)) Reflect.deleteProperty(process.env, name)
  Object.assign(process.env, env)
  process.chdir(cwd)
  process.argv = [process.execPath, program, ...line]
  const stdin = new PassThrough()
  stdin.end(input)
  Object.defineProperty(process, 'stdin', { configurable: true, value: stdin })
  return new Promise((resolve) => {
    process.exit = resolve as typeof process.exit
    Reflect.deleteProperty(require.cache, program)
    require(program)
  })
}

async function isAtRest(): Promise<boolean> {
  if (Object.keys(require.cache).some((file) => takesHome.test(file))) return false
  // A connection that was closed is there for a few turns of the event loop.
  for (let turn = 0; turn < 100; turn++) {
    if (held() === heldAtRest) return true
    await new Promise((resolve) => setImmediate(resolve))
  }
  return false
}
