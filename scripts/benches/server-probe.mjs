import { createServer } from 'node:net'
import { createHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Loaded into a server that is measured (`node --import`): tells what only its own process knows, to `server-probe.ts`,
 * one word and one answer per line. It does nothing until it is asked for the first time.
 */
const { searchParams } = new URL(import.meta.url)
const lagResolutionMs = Number(searchParams.get('lagResolutionMs'))

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc')

/** As the server's own metrics have it; from the first time on that somebody asks. */
const lag = monitorEventLoopDelay({ resolution: lagResolutionMs })

/**
 * The part of each turn's lag that cannot be others': however late a timer comes, the thread did no more than it had of a
 * processor since the last time. Of a machine that is busy with other programs, the rest is their doing.
 */
const own = createHistogram()
let last = null
function noteTurn() {
  const now = { at: performance.now(), cpu: process.threadCpuUsage() }
  if (last !== null) {
    const late = now.at - last.at - lagResolutionMs
    const worked = (now.cpu.user + now.cpu.system - last.cpu.user - last.cpu.system) / 1_000
    own.record(Math.max(1, Math.round((lagResolutionMs + Math.max(0, Math.min(late, worked))) * 1e6)))
  }
  last = now
}
let turns = null

const answers = {
  ownLag() {
    const p99 = own.count === 0 ? 0 : own.percentile(99) / 1e6
    turns ??= setInterval(noteTurn, lagResolutionMs).unref()
    own.reset()
    return p99
  },
  lag() {
    const p99 = lag.percentile(99) / 1e6
    lag.enable()
    lag.reset()
    return p99
  },
  resident() {
    // The first one lets go of what the second one can then give back.
    for (let round = 0; round < 2; round++) gc({ type: 'major', execution: 'sync', flavor: 'last-resort' })
    return process.memoryUsage.rss()
  },
}

const server = createServer((socket) => {
  socket.setEncoding('utf8')
  socket.on('error', () => undefined)
  socket.on('data', (word) => socket.write(`${JSON.stringify(answers[word.trim()]())}\n`))
})
server.listen(searchParams.get('socket'))
server.unref()
