import { createHash } from 'node:crypto'
import { Intrinsics, JSException, QuickJS, type JSValueHandle, type QuickJSOptions } from 'quickjs-wasi'
import { engineLimits } from './words.ts'

// A fresh engine with its limits. It is thrown away after a replay, and after anything that it threw.

/** Names that would be of no use, or tell one machine from another. */
const intrinsics = (Intrinsics.ALL & ~(Intrinsics.WEAK_REF | Intrinsics.PERFORMANCE)) >>> 0

export interface Instance {
  vm: QuickJS
  /** True once the processor time is over. */
  readonly isOutOfTime: boolean
  /** Processor time counts from here, and the program sees this time, in ms UTC. */
  begin(startedAt: number, replayMs?: number): void
  /** Ends whatever runs, since the program is over. */
  halt(): void
  /** The time that the program sees, in ms UTC. */
  setClock(at: number): void
  /** Rejections that nobody has handled, by the identity of their promise, which lives as long as it is here. */
  readonly unhandled: ReadonlyMap<number, Rejection>
}

export interface Rejection {
  promise: JSValueHandle
  reason: JSValueHandle
}

export async function createInstance(wasm: WebAssembly.Module): Promise<Instance> {
  let now = 0
  let isOutOfTime = false
  let isHalted = false
  const unhandled = new Map<number, Rejection>()
  let mostUs = engineLimits.replayMs * 1_000
  const usedUs = () => {
    const { user, system } = process.threadCpuUsage()
    return user + system
  }
  let before = usedUs()
  const options: QuickJSOptions = {
    wasm,
    memoryLimit: engineLimits.memoryBytes,
    maxStackSize: engineLimits.stackBytes,
    intrinsics,
    timezoneOffset: 0,
    interruptHandler() {
      isOutOfTime ||= usedUs() - before > mostUs
      return isOutOfTime || isHalted
    },
    onUnhandledRejection(promise, reason, isHandled) {
      if (isHandled) unhandled.delete(promise.identity)
      else unhandled.set(promise.identity, { promise: promise.dup(), reason: reason.dup() })
    },
    wasi: (memory) => ({
      clock_time_get(_clock: number, _precision: bigint, at: number) {
        new DataView(memory.buffer).setBigUint64(at, BigInt(now) * 1_000_000n, true)
        return 0
      },
      random_get(at: number, length: number) {
        new Uint8Array(memory.buffer, at, length).fill(0)
        return 0
      },
      fd_write: () => 0,
    }),
  }
  const vm = await QuickJS.create(options)
  return {
    vm,
    unhandled,
    get isOutOfTime() {
      return isOutOfTime
    },
    begin(startedAt, replayMs = engineLimits.replayMs) {
      now = startedAt
      mostUs = replayMs * 1_000
      before = usedUs()
    },
    halt() {
      isHalted = true
    },
    setClock(at) {
      now = at
    },
  }
}

/** Four whole numbers that follow from a text. */
export function seedOf(text: string): number[] {
  const digest = createHash('sha256').update(text).digest()
  return [0, 4, 8, 12].map((at) => digest.readInt32LE(at))
}

export const isMemoryError = ({ name = '', message }: { name?: string; message: string }): boolean =>
  name === 'InternalError' && message.includes('out of memory')

/** An error of the program that the engine threw to us; anything else is a defect of the engine itself. */
export const asGuestError = (error: unknown): JSException | null => (error instanceof JSException ? error : null)
