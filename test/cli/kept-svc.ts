import { spawn, type ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { compileCache } from '../kit/compile-cache.ts'
import { programFile } from '../kit/program-file.ts'
import type { Finished } from './run-svc.ts'

/**
 * Runs calls of `svc` one after another in one process, where a call costs a few milliseconds: a start of Node costs a hundred or two,
 * and tests make many hundreds of calls. The bundled program runs there from its `main.js` on, with output, environment and
 * folder of the process itself (kept-svc-program.ts). What a kept process cannot show runs in one of its own (run-svc.ts), and
 * own-process.test.ts runs a call of each family of commands in both.
 */
export interface KeptCall {
  line: readonly string[]
  /** The whole of it. */
  env: Record<string, string>
  input: string
  cwd: string
}

/** What the process says at the end of a call. */
export interface KeptEnd {
  status: number
  /** Bytes that it has written since its start. */
  stdout: number
  stderr: number
  /** It ends now, since the call left something behind. */
  isSpent: boolean
}

/** The one of this worker. */
let kept: KeptSvc | null = null

/** Returns null while another call is at work. */
export function callKept(call: KeptCall): Promise<Finished> | null {
  if (kept?.state === 'busy') return null
  if (kept?.state !== 'free') kept = new KeptSvc()
  return kept.call(call)
}

class KeptSvc {
  state: 'free' | 'busy' | 'ended' = 'free'
  readonly #child: ChildProcess
  readonly #stdout: Output
  readonly #stderr: Output
  readonly #closed: Promise<number | null>

  constructor() {
    const program = join(import.meta.dirname, 'kept-svc-program.ts')
    this.#child = spawn(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', program, programFile('cli')],
      // It names nothing of a test, and stands in no folder of one.
      { env: compileCache, cwd: '/', stdio: ['ignore', 'pipe', 'pipe', 'ipc'] },
    )
    this.#stdout = new Output(this.#child.stdout!)
    this.#stderr = new Output(this.#child.stderr!)
    this.#closed = new Promise((resolve, reject) => {
      this.#child.on('error', reject)
      this.#child.on('close', (status) => {
        this.state = 'ended'
        resolve(status)
      })
    })
    // It does not keep this process, with which it ends.
    this.#child.unref()
    this.#child.channel!.unref()
  }

  async call(call: KeptCall): Promise<Finished> {
    this.state = 'busy'
    const ended = new Promise<KeptEnd>((resolve) => this.#child.once('message', resolve))
    this.#child.send(call)
    const end = await Promise.race([ended, this.#closed])
    if (end === null || typeof end === 'number') {
      // A defect of svc ended the process.
      return { status: end, stdout: this.#stdout.take(), stderr: this.#stderr.take() }
    }
    if (end.isSpent) await this.#closed
    await Promise.all([this.#stdout.until(end.stdout), this.#stderr.until(end.stderr)])
    if (!end.isSpent) this.state = 'free'
    return { status: end.status, stdout: this.#stdout.take(), stderr: this.#stderr.take() }
  }
}

/** Collects what comes from an output of the process. */
class Output {
  #count = 0
  #chunks: Buffer[] = []
  #look = () => {}

  constructor(stream: Readable) {
    stream.on('data', (chunk: Buffer) => {
      this.#count += chunk.length
      this.#chunks.push(chunk)
      this.#look()
    })
    ;(stream as Readable & { unref(): void }).unref()
  }

  /** Resolves when so many bytes have come since the start. */
  until(count: number): Promise<void> {
    return new Promise((resolve) => {
      this.#look = () => {
        if (this.#count >= count) resolve()
      }
      this.#look()
    })
  }

  /** Returns what has come since the last time. */
  take(): string {
    return Buffer.concat(this.#chunks.splice(0)).toString('utf8')
  }
}
