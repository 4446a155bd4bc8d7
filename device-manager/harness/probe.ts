import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { constants } from 'node:fs'
import { access, open, stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'
import { lineReader } from '../../shared/lib/lines.ts'
import { spawnPiped } from '../process/program.ts'
import type { HarnessProbe, ProbeResult, ProbeTalk } from './adapter.ts'
import { messageOf } from '../log/host-log.ts'
import { jsonObject } from './parts/json-lines.ts'

/** More than any version or status needs; the rest is read and dropped. */
const maxOutputBytes = 256 * 1024
/** A program's children may hold its output open after it has left; they are not waited for longer than this. */
const drainMs = 200

/**
 * The door to the machine for `detect`: looks programs up and runs them with the environment that a run would get.
 * Programs run in a session of their own and their whole group is killed at the end.
 */
export function harnessProbe(options: {
  env: Readonly<Record<string, string>>
  homeDir: string
  /** Leads a program behind the wall: it may lie where a run can write. */
  enter?: (launch: ProbeLaunch) => ProbeLaunch
}): HarnessProbe {
  const env = { ...options.env, ...quiet }
  return {
    env,
    homeDir: options.homeDir,
    which: (program) => which(program, env['PATH'] ?? ''),
    run: (file, args, timeoutMs, talk) => {
      const launch = { file, args, env, cwd: options.homeDir }
      return run({ ...(options.enter?.(launch) ?? launch), timeoutMs, ...(talk && { talk }) })
    },
    exists: (path) =>
      stat(path).then(
        () => true,
        () => false,
      ),
    readStart,
  }
}

const settingsBytes = 64 * 1024

async function readStart(path: string): Promise<string | null> {
  try {
    // A pipe in its place must not keep the probe waiting.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(settingsBytes) })
      return buffer.toString('utf8', 0, bytesRead)
    } finally {
      await file.close()
    }
  } catch {
    return null
  }
}

/** A look at what is installed must not start an update, or ask the network for anything. */
const quiet: Readonly<Record<string, string>> = {
  DISABLE_AUTOUPDATER: '1',
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  OPENCODE_DISABLE_AUTOUPDATE: '1',
  OPENCODE_DISABLE_MODELS_FETCH: '1',
  NO_COLOR: '1',
}

async function which(program: string, path: string): Promise<string | null> {
  for (const folder of path.split(delimiter)) {
    // An entry that is not absolute would be looked up in the daemon's folder, not in the run's.
    if (!isAbsolute(folder)) continue
    const file = join(folder, program)
    if (await isProgram(file)) return file
  }
  return null
}

async function isProgram(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK)
    return (await stat(file)).isFile()
  } catch {
    return false
  }
}

export interface ProbeLaunch {
  file: string
  args: readonly string[]
  env: Readonly<Record<string, string>>
  cwd: string
}

interface ProbeRun extends ProbeLaunch {
  timeoutMs: number
  talk?: ProbeTalk
}

function run({ file, args, timeoutMs, env, cwd, talk }: ProbeRun): Promise<ProbeResult> {
  const piped = spawnPiped(file, args, { env, cwd, detached: true })
  return new Promise((resolve) => {
    if ('failed' in piped) return resolve({ exitCode: null, stdout: '', stderr: '', timedOut: false })
    const { child, pid } = piped
    const stdout = collector()
    const stderr = collector()
    if (talk === undefined) child.stdin.end()
    else
      speak(talk, child, (why) => {
        stderr.take(Buffer.from(why))
        killGroup(pid)
      })
    child.stdout.on('data', (chunk: Buffer) => stdout.take(chunk))
    child.stderr.on('data', (chunk: Buffer) => stderr.take(chunk))
    let timedOut = false
    let drain: NodeJS.Timeout | null = null
    const limit = setTimeout(() => {
      timedOut = true
      killGroup(pid)
    }, timeoutMs)
    const finish = (exitCode: number | null) => {
      clearTimeout(limit)
      if (drain !== null) clearTimeout(drain)
      child.stdout.destroy()
      child.stderr.destroy()
      resolve({ exitCode, stdout: stdout.text(), stderr: stderr.text(), timedOut })
    }
    child.on('exit', (exitCode) => {
      // The leader is gone, but its group may live on; its number is not given to another while a member lives.
      killGroup(pid)
      drain = setTimeout(() => finish(exitCode), drainMs)
    })
    child.on('close', (exitCode) => finish(exitCode))
  })
}

/** `failed`: what the program said is not what the talk can go on with. */
function speak(talk: ProbeTalk, child: ChildProcessWithoutNullStreams, failed: (why: string) => void): void {
  const lines = lineReader(maxOutputBytes)
  child.stdin.write(talk.opening)
  child.stdout.on('data', (chunk: Buffer) => {
    for (const { kind, bytes } of lines.push(chunk)) {
      const said = kind === 'line' && child.stdin.writable ? jsonObject(bytes) : null
      if (said === null) continue
      try {
        const answer = talk.answer(said)
        if (answer === null) child.stdin.end()
        else child.stdin.write(answer)
      } catch (error) {
        failed(messageOf(error))
      }
    }
  })
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // None is left.
  }
}

function collector() {
  const chunks: Buffer[] = []
  let bytes = 0
  return {
    take(chunk: Buffer) {
      if (bytes < maxOutputBytes) chunks.push(chunk.subarray(0, maxOutputBytes - bytes))
      bytes += chunk.length
    },
    text: () => Buffer.concat(chunks).toString('utf8'),
  }
}
