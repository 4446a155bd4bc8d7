#!/usr/bin/env node
// A scripted harness for tests of the whole system: a real program that does what its arguments say, in their order.
//
//     node fake-harness.mjs [step ...]
//     FAKE_STEPS='step ...' node fake-harness.mjs       (JSON array of strings, or words; used when there are no arguments)
//
// When it starts it appends one line of JSON to the file in FAKE_STARTS, in one write:
//     {"pid":N,"ppid":N,"at":ms,"runId":"<SVC_RUN_ID or null>","argv":[...]}
// so a test can count how often a harness was started, whatever happened to it later. Where the environment is cut on
// the way, the steps `starts=FILE` and `children=FILE` do what FAKE_STARTS and FAKE_CHILDREN do.
//
// Steps:
//     lines=N            write N numbered lines `<n> <payload> <sha256 of the payload>`; numbers go on over several steps
//     rate=N             at most N lines a second from here on (0: as fast as the reader takes them; the default)
//     size=N             length of a payload in characters from here on (default 32, at most 1 MiB)
//     flood=BYTES        write BYTES bytes of numbered lines as fast as the reader takes them
//     text=TEXT          write TEXT and a line end (\n, \r, \e, \t and \xNN in it are control characters)
//     hex=HEX            write these bytes as they are
//     err=TEXT           write TEXT to standard error
//     sleep=MS           wait that long
//     await=FILE         wait until FILE exists (how a test holds it at a point, without time)
//     touch=FILE         create FILE, with its folder (how it tells a test that it is at a point)
//     write=FILE:TEXT    write TEXT and a line end to FILE, relative to the working folder
//     append=FILE:TEXT   the same, at the end of FILE
//     remove=FILE        remove FILE
//     read=N             read N lines from standard input and write each back as `read: <line>`
//     prompt             write `prompt: <SVC_PROMPT>` and `prompt-file: <sha256 of the file SVC_PROMPT_FILE names>`
//     env=NAME           write `NAME=<value>`, or `NAME is not set`
//     env                write the whole environment, sorted, one `NAME=<value>` a line
//     cwd                write `cwd: <folder>`
//     tty                write `tty: <true or false of standard input> <columns>x<rows>`
//     ignore=SIGINT,...  ignore these signals from here on (each that comes is written as `ignored SIGINT`)
//     child=KIND[:SECS]  start a child that lives SECS seconds (default 600) and goes on without waiting for it:
//                          plain     in this process group, holding the terminal
//                          quiet     in this process group, holding no output
//                          stubborn  in this process group, ignoring SIGHUP, SIGINT and SIGTERM
//                          setsid    in a session of its own, holding the terminal
//                          escaped   in a session of its own, ignoring signals, holding no output, its parent gone
//                        its pid is written as `child <pid>` and, where FAKE_CHILDREN names a file, appended to it
//     spin=MS            keep a processor busy for that long
//     forever            do nothing more, and stay
//     run=COMMAND        run COMMAND in /bin/sh, its output through this one; `run exited N`
//     signal=NAME        end by sending itself this signal
//     exit=N             end with this status (the default after the last step is 0)
//
// A step that is not known ends it with status 64. A line is on its way to the reader before the next step begins.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, watch, writeFileSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { createInterface } from 'node:readline'

const steps = stepsOf(process.argv.slice(2), process.env.FAKE_STEPS)
const settings = { rate: 0, size: 32, children: process.env.FAKE_CHILDREN ?? '' }
let lineNumber = 0
let input = null

if (process.env.FAKE_STARTS) noteStart(process.env.FAKE_STARTS)
process.stdout.on('error', (error) => {
  // The reader is gone; there is no one to tell.
  if (error.code === 'EPIPE' || error.code === 'EIO') process.exit(0)
  throw error
})

const actions = {
  starts: (value) => noteStart(resolve(value)),
  children: (value) => void (settings.children = resolve(value)),
  lines: async (value) => {
    const startedAt = performance.now()
    const count = number(value)
    for (let written = 0; written < count; written++) {
      if (settings.rate > 0) await sleepUntil(startedAt + (written * 1000) / settings.rate)
      await out(nextLine())
    }
  },
  rate: (value) => void (settings.rate = number(value)),
  size: (value) => void (settings.size = Math.min(number(value), 1024 * 1024)),
  flood: async (value) => {
    for (let left = number(value); left > 0;) {
      let block = ''
      while (block.length < Math.min(64 * 1024, left)) block += nextLine()
      await out(block)
      left -= block.length
    }
  },
  text: (value) => out(`${unescaped(value)}\n`),
  hex: (value) => out(Buffer.from(value, 'hex')),
  err: (value) => new Promise((done) => process.stderr.write(`${value}\n`, () => done())),
  sleep: (value) => new Promise((done) => setTimeout(done, number(value))),
  await: (value) => fileAppears(resolve(value)),
  touch: (value) => {
    mkdirSync(dirname(resolve(value)), { recursive: true })
    writeFileSync(resolve(value), '')
  },
  write: (value) => toFile(value, writeFileSync),
  append: (value) => toFile(value, appendFileSync),
  remove: (value) => rmSync(resolve(value), { recursive: true, force: true }),
  read: async (value) => {
    input ??= createInterface({ input: process.stdin })[Symbol.asyncIterator]()
    for (let left = number(value); left > 0; left--) {
      const line = await input.next()
      await out(line.done ? 'read: (end)\n' : `read: ${line.value}\n`)
      if (line.done) return
    }
  },
  prompt: async () => {
    const file = process.env.SVC_PROMPT_FILE
    await out(`prompt: ${process.env.SVC_PROMPT ?? '(none)'}\n`)
    await out(`prompt-file: ${file ? sha256(readFileSync(file)) : '(none)'}\n`)
  },
  env: (value) => {
    if (value === '') return out(`${envLines().join('\n')}\n`)
    return out(process.env[value] === undefined ? `${value} is not set\n` : `${value}=${process.env[value]}\n`)
  },
  cwd: () => out(`cwd: ${process.cwd()}\n`),
  tty: () => out(`tty: ${String(process.stdin.isTTY)} ${process.stdout.columns ?? 0}x${process.stdout.rows ?? 0}\n`),
  ignore: (value) => {
    for (const signal of value.split(',')) process.on(signal, () => void out(`ignored ${signal}\n`))
  },
  child: (value) => startChild(value),
  spin: (value) => {
    const until = performance.now() + number(value)
    while (performance.now() < until);
  },
  forever: () => {
    setInterval(() => {}, 3_600_000)
    return new Promise(() => {})
  },
  run: async (value) => {
    const child = spawn('/bin/sh', ['-c', value], { stdio: 'inherit' })
    const [code, signal] = await new Promise((done) => child.on('exit', (...ending) => done(ending)))
    await out(`run exited ${signal ?? code}\n`)
  },
  signal: (value) => {
    process.removeAllListeners(value)
    process.kill(process.pid, value)
    return new Promise((done) => setTimeout(done, 10_000))
  },
  exit: (value) => process.exit(number(value)),
}

for (const step of steps) {
  const at = step.indexOf('=')
  const action = actions[at === -1 ? step : step.slice(0, at)]
  if (action === undefined) {
    process.stderr.write(`fake-harness: unknown step ${step}\n`)
    process.exit(64)
  }
  await action(at === -1 ? '' : step.slice(at + 1))
}
process.exit(0)

function stepsOf(argv, fromEnv) {
  if (argv.length > 0 || !fromEnv) return argv
  return fromEnv.startsWith('[') ? JSON.parse(fromEnv) : fromEnv.split(/\s+/).filter(Boolean)
}

function noteStart(file) {
  const { pid, ppid } = process
  const start = { pid, ppid, at: Date.now(), runId: process.env.SVC_RUN_ID ?? null, argv: process.argv.slice(2) }
  appendFileSync(file, `${JSON.stringify(start)}\n`)
}

function number(value) {
  const parsed = Number(value)
  if (!Number.isFinite(parsed) || parsed < 0) {
    process.stderr.write(`fake-harness: not a number: ${value}\n`)
    process.exit(64)
  }
  return parsed
}

function nextLine() {
  lineNumber++
  const payload = `${lineNumber}:${'abcdefghijklmnopqrstuvwxyz0123456789'.repeat(1 + settings.size / 36)}`.slice(
    0,
    settings.size,
  )
  return `${lineNumber} ${payload} ${sha256(payload)}\n`
}

function sha256(value) {
  return createHash('sha256').update(value).digest('hex')
}

/** Resolves when the reader's side has taken it, so memory stays small and no step overtakes another's output. */
function out(value) {
  return new Promise((done) => process.stdout.write(value, () => done()))
}

function sleepUntil(time) {
  const left = time - performance.now()
  return left > 1 ? new Promise((done) => setTimeout(done, left)) : undefined
}

function unescaped(text) {
  const names = { n: '\n', r: '\r', t: '\t', e: '\x1b' }
  return text.replace(/\\(?:x([0-9a-f]{2})|([nrte]))/gi, (_, hex, name) =>
    hex ? String.fromCharCode(parseInt(hex, 16)) : names[name.toLowerCase()],
  )
}

/** Watches the folder and looks again now and then: a watch may miss what happened before it was set up. */
function fileAppears(path) {
  mkdirSync(dirname(path), { recursive: true })
  return new Promise((done) => {
    const look = () => {
      if (!existsSync(path)) return
      watcher.close()
      clearInterval(timer)
      done()
    }
    const watcher = watch(dirname(path), (_, name) => (name === null || name === basename(path)) && look())
    watcher.on('error', () => {})
    const timer = setInterval(look, 50)
    look()
  })
}

function toFile(value, put) {
  const at = value.indexOf(':')
  const path = resolve(value.slice(0, at))
  mkdirSync(dirname(path), { recursive: true })
  put(path, `${unescaped(value.slice(at + 1))}\n`)
}

function envLines() {
  return Object.keys(process.env)
    .sort()
    .map((name) => `${name}=${process.env[name]}`)
}

async function startChild(value) {
  const [kind, seconds = '600'] = value.split(':')
  const live = `exec sleep ${number(seconds)}`
  // An ignored signal stays ignored across exec, so the `sleep` itself ignores it.
  const deaf = `trap '' HUP INT TERM; ${live}`
  const kinds = {
    plain: { script: live },
    quiet: { script: live, stdio: 'ignore' },
    stubborn: { script: deaf },
    setsid: { script: live, detached: true },
    escaped: { script: deaf, stdio: 'ignore', detached: true, orphan: true },
  }
  const { script, stdio = 'inherit', detached = false, orphan = false } = kinds[kind] ?? process.exit(64)
  const pid = orphan ? await orphanedPid(script) : spawn('/bin/sh', ['-c', script], { stdio, detached }).pid
  if (settings.children !== '') appendFileSync(settings.children, `${pid}\n`)
  await out(`child ${pid}\n`)
}

/** Its parent, a shell in a session of its own, says the pid and leaves. */
async function orphanedPid(script) {
  const starter = spawn('/bin/sh', ['-c', `(${script}) </dev/null >/dev/null 2>&1 & echo $!`], {
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  })
  let said = ''
  for await (const chunk of starter.stdout) said += chunk
  return Number(said.trim())
}
