import { createHash } from 'node:crypto'
import type { JSValueHandle, QuickJS } from 'quickjs-wasi'
import { canonicalJson } from '../../../shared/lib/canonical-json.ts'
import { asStorable } from '../../../shared/lib/storable.ts'
import { bannedNames } from '../program/check.ts'
import { misfitOfCall } from './args.ts'
import { guest, guestFile } from './guest.ts'
import { asGuestError, isMemoryError, seedOf, type Instance } from './instance.ts'
import { positionIn, programFile, wrapped } from './source.ts'
import {
  engineLimits,
  type CallKind,
  type ProgramCall,
  type ProgramEnd,
  type ReplayInput,
  type Replayed,
} from './words.ts'

/**
 * Runs a program in a fresh instance, from its beginning to where it waits, with the results that its calls came to. They are handed over one
 * by one, in their order, and everything that follows from one is done before the next: so the program does the same each
 * time. Its calls are compared with the known ones by their numbers.
 */
export function replay(instance: Instance, input: ReplayInput): Replayed {
  return new Replay(input).run(instance)
}

class Replay {
  private readonly input: ReplayInput
  private readonly calls: ProgramCall[] = []
  private readonly log: string[] = []
  private made = 0
  private bytes: number
  private logChars = 0
  private end: ProgramEnd | null = null
  private halt: () => void = () => undefined
  private isOutOfMemory = false
  private unhandled: Instance['unhandled'] = new Map()
  /** Rejections that nobody had handled when the program returned. */
  private lost: readonly number[] = []
  private differs: { seq: number; made: ProgramCall | null } | null = null

  constructor(input: ReplayInput) {
    this.input = input
    this.bytes = input.journalBytes
  }

  run(instance: Instance): Replayed {
    const { startedAt, replayMs } = this.input
    instance.begin(startedAt, replayMs)
    const { vm } = instance
    this.halt = () => instance.halt()
    this.unhandled = instance.unhandled
    try {
      const parts = this.prepare(vm)
      const describe = parts.getProp('describe')
      const main = vm.evalCode(wrapped(this.input.source), programFile)
      vm.callFunction(parts.getProp('run'), vm.undefined, main)
      this.drain(instance, describe)
      const settle = parts.getProp('settle')
      for (const { seq, at, isValue, text } of this.input.results) {
        if (this.end !== null || this.differs !== null) break
        if (seq >= this.made) {
          this.differs = { seq, made: null }
          break
        }
        instance.setClock(at)
        vm.callFunction(settle, vm.undefined, vm.newNumber(seq), isValue ? vm.true : vm.false, vm.newString(text))
        this.drain(instance, describe)
      }
    } catch (error) {
      const beyond = this.judge(error, instance)
      if (beyond !== null) return beyond
    }
    return this.outcome(instance)
  }

  private prepare(vm: QuickJS): JSValueHandle {
    const host = vm.newObject()
    const give = (name: string, work: (...args: string[]) => string | number) =>
      host.setProp(
        name,
        vm.newFunction(name, (...args) => {
          const answer = work(...args.map((arg) => arg.toString()))
          return typeof answer === 'number' ? vm.newNumber(answer) : vm.newString(answer)
        }),
      )
    give('call', (kind, text) => this.take(kind as CallKind, text ?? '{}'))
    give('log', (line) => this.addLine(line ?? ''))
    give('failure', (line) => (this.input.logsFailures === true ? this.addLine(line ?? '') : 0))
    give('end', (kind, text) => this.takeEnd(kind ?? '', text ?? 'null'))
    const start = vm.evalCode(guest, guestFile)
    const names = vm.hostToHandle([...bannedNames])
    const seed = vm.hostToHandle(seedOf(this.input.seed))
    return vm.callFunction(start, vm.undefined, host, names, vm.newString(this.input.input), seed)
  }

  /** Does all that can be done now. */
  private drain({ vm, unhandled }: Instance, describe: JSValueHandle): void {
    vm.executePendingJobs()
    const hasReturned = this.end?.kind === 'returned'
    // A promise that is rejected after the return is cut off by it, and is none of the program's failures.
    const id = hasReturned ? this.lost.find((each) => unhandled.has(each)) : [...unhandled.keys()][0]
    const rejection = id === undefined ? undefined : unhandled.get(id)
    if (rejection === undefined || this.end?.kind === 'failed') return
    this.end = null
    this.takeEnd('failed', vm.callFunction(describe, vm.undefined, rejection.reason).toString())
  }

  /** The number of the call, or why it is none. */
  private take(kind: CallKind, text: string): number | string {
    if (this.end !== null || this.differs !== null) return 'The program has ended.'
    const args: unknown = JSON.parse(text)
    const misfit = misfitOfCall(kind, args)
    if (misfit !== null) return misfit
    const seq = this.made
    const digest = createHash('sha256')
      .update(canonicalJson([kind, args]))
      .digest('base64url')
    const call = { kind, args: text, digest }
    const known = this.input.known[seq]
    if (known !== undefined && known !== digest) {
      this.differs = { seq, made: call }
      return 'The program has ended.'
    }
    if (known === undefined) {
      this.bytes += text.length
      if (seq >= engineLimits.calls)
        return this.failAt(`A program makes at most ${engineLimits.calls.toLocaleString('en')} steps.`)
      if (this.bytes > engineLimits.journalBytes)
        return this.failAt('The steps and results of a program take at most 16 MiB.')
      this.calls.push(call)
    }
    this.made++
    return seq
  }

  private failAt(message: string): string {
    this.end = { kind: 'failed', message, line: null, column: null }
    this.halt()
    return message
  }

  private addLine(line: string): number {
    const cut = line.slice(0, engineLimits.logLineChars)
    this.log.push(cut)
    this.logChars += cut.length
    while (this.log.length > engineLimits.logLines || this.logChars > engineLimits.logChars)
      this.logChars -= this.log.shift()!.length
    return 0
  }

  private takeEnd(kind: string, text: string): number {
    if (this.end !== null || this.differs !== null) return 0
    if (kind === 'returned') {
      this.lost = [...this.unhandled.keys()]
      const summary = JSON.parse(text) as string | null
      this.end = { kind, summary: summary === null ? null : asStorable(summary.slice(0, engineLimits.summaryChars)) }
      return 0
    }
    const { name, message = '', stack = '' } = JSON.parse(text) as { name?: string; message?: string; stack?: string }
    if (isMemoryError({ name: name ?? '', message })) this.isOutOfMemory = true
    const said = name === undefined || name === 'Error' ? message : `${name}: ${message}`
    this.end = { kind: 'failed', message: asStorable(said.slice(0, engineLimits.messageChars)), ...positionIn(stack) }
    this.halt()
    return 0
  }

  /** Returns what an error that reached us says of the engine; null: it is the program's own, which has ended by it. */
  private judge(error: unknown, instance: Instance): Replayed | null {
    if (instance.isOutOfTime || this.end !== null) return null
    const thrown = asGuestError(error)
    if (thrown === null) return { kind: 'beyond', limit: isOutOfMemoryText(error) ? 'memory' : 'crash' }
    const { name, message, stack = '' } = thrown
    this.takeEnd('failed', JSON.stringify({ name, message, stack }))
    return null
  }

  private outcome(instance: Instance): Replayed {
    if (instance.isOutOfTime) return { kind: 'beyond', limit: 'time' }
    if (this.isOutOfMemory) return { kind: 'beyond', limit: 'memory' }
    const { differs, end, calls, log } = this
    if (differs !== null) return { kind: 'differs', ...differs }
    const isShort = this.made < this.input.known.length
    if (isShort) return { kind: 'differs', seq: this.made, made: null }
    instance.vm.dispose()
    return { kind: 'replayed', calls, log, end }
  }
}

const isOutOfMemoryText = (error: unknown) => error instanceof Error && error.message.includes('out of memory')
