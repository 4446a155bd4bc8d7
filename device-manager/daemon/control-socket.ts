import { rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import {
  controlLimits,
  controlRequest,
  type ControlOp,
  type ControlRequest,
  type ControlValue,
} from '../../shared/device/control.ts'
import { jsonLine, jsonLineReader, parseJsonText } from '../../shared/lib/lines.ts'
import type { Log } from '../log/log.ts'

export class ControlError extends Error {
  readonly code: 'not_connected' | 'no_such_run' | 'failed'
  constructor(code: 'not_connected' | 'no_such_run' | 'failed', message: string) {
    super(message)
    this.code = code
  }
}

export type ControlHandlers = {
  [O in ControlOp]: (request: Extract<ControlRequest, { op: O }>) => Promise<ControlValue<O>>
}

/** What is under way when the daemon ends may still be answered within this time. */
const lastAnswersMs = 1_000

/** The daemon's control socket: one request and one reply per connection, for `svc device ...` on this machine. */
export class ControlSocket {
  private readonly server: Server
  private readonly open = new Set<Socket>()
  private readonly options: { path: string; handlers: ControlHandlers; log: Log; afterReply(op: ControlOp): void }

  constructor(options: { path: string; handlers: ControlHandlers; log: Log; afterReply(op: ControlOp): void }) {
    this.options = options
    this.server = createServer((socket) => this.serve(socket))
  }

  async listen(): Promise<void> {
    // The place was taken before (start/lock.ts), so a socket that lies there belongs to a daemon that is gone.
    rmSync(this.options.path, { force: true })
    const mask = process.umask(0o077)
    try {
      await new Promise<void>((resolve, reject) => {
        this.server.once('error', reject)
        this.server.listen(this.options.path, resolve)
      })
      // No connection can be taken at this moment, such as when no file is left; unheard it would end the daemon.
      this.server.on('error', (error) => this.options.log.warn({ err: error }, 'the control socket failed'))
    } finally {
      process.umask(mask)
    }
  }

  /** Waits for nobody for long: looking at all harnesses takes a minute, and one that never asks could hold up the end. */
  async close(): Promise<void> {
    const cut = setTimeout(() => {
      for (const socket of this.open) socket.destroy()
    }, lastAnswersMs)
    await new Promise<void>((resolve) => this.server.close(() => resolve()))
    clearTimeout(cut)
    rmSync(this.options.path, { force: true })
  }

  private serve(socket: Socket): void {
    this.open.add(socket)
    socket.on('close', () => this.open.delete(socket))
    const read = jsonLineReader(controlLimits.requestBytes)
    socket.setTimeout(controlLimits.replyMs, () => socket.destroy())
    socket.on('error', () => socket.destroy())
    socket.on('data', (chunk: Buffer) => {
      const { lines, isTooLong } = read(chunk)
      const [line] = lines
      if (line === undefined) {
        if (isTooLong) socket.destroy()
        return
      }
      socket.removeAllListeners('data')
      socket.setTimeout(0)
      void this.answer(line).then(({ op, reply }) => {
        socket.end(jsonLine(reply), () => {
          if (op) this.options.afterReply(op)
        })
      })
    })
  }

  private async answer(line: string): Promise<{ op: ControlOp | null; reply: unknown }> {
    const refuse = (code: string, message: string) => ({ op: null, reply: { ok: false, error: { code, message } } })
    const value = parseJsonText(line) as { op?: unknown } | null | undefined
    if (value === undefined) return refuse('bad_request', 'The request is not JSON.')
    const parsed = controlRequest.safeParse(value)
    if (!parsed.success) {
      const op = value?.op
      const known = controlRequest.options.some((option) => option.shape.op.value === op)
      if (!known) return refuse('unknown_op', `There is no operation ${typeof op === 'string' ? op : 'of that kind'}.`)
      return refuse('bad_request', parsed.error.issues[0]?.message ?? 'The request does not fit.')
    }
    try {
      const handler = this.options.handlers[parsed.data.op] as (request: ControlRequest) => Promise<unknown>
      return { op: parsed.data.op, reply: { ok: true, value: await handler(parsed.data) } }
    } catch (error) {
      if (error instanceof ControlError) return refuse(error.code, error.message)
      this.options.log.error({ err: error, op: parsed.data.op }, 'a control request failed')
      return refuse('failed', error instanceof Error ? error.message : String(error))
    }
  }
}
