import type { World } from '../../../shared/lib/world.ts'
import type { RunEventBody } from '../../../shared/runs/events.ts'
import type { HarnessDialogue, ProcessExit, DialogueOutput, ToolAsk } from '../../harness/adapter.ts'
import type { CallReach } from '../../../shared/permissions/reach.ts'
import type { CallAnswer } from '../permission/call-judge.ts'
import { WordJoiner } from './word-joiner.ts'
import { redactBody, type Redact, type StreamRedactor } from './redaction.ts'

export interface PipelineOptions {
  world: Pick<World, 'after' | 'monotonic'>
  dialogue: HarnessDialogue
  /** Redacts the stream of a terminal. */
  redactor: StreamRedactor
  /** Redacts events and texts. */
  redact: Redact
  /** Bytes are the transcript and are redacted as a stream. Otherwise events are redacted after parsing. */
  isTranscript: boolean
  /** Returns what the call reaches for, in a bounded time; never fails. */
  lookUp(ask: ToolAsk): Promise<CallReach>
  decide(ask: ToolAsk, reach: CallReach): CallAnswer
  emit(bodies: readonly RunEventBody[]): void
  write(text: string): void
  closeInput(): void
  /** The harness gave its result. */
  onFinished(): void
  onEndNow(): void
}

/** Output of a terminal that is read in turns of the event loop right after each other becomes one event of at most this size. */
const pieceBytes = 16 * 1024

/** The end of a prompt that looks like the beginning of a secret is shown when nothing more came for so long. */
const silenceMs = 1_000

/** Leads bytes of the harness -> redaction -> parser -> events, and the answers of parser and judge back to the harness. */
export class Pipeline {
  readonly #options: PipelineOptions
  #chunks: Uint8Array[] = []
  #held = 0
  #isScheduled = false
  /** Calls are answered one after another, in the order in which they were asked. */
  #answers: Promise<void> = Promise.resolve()
  #isOver = false
  #cancelRelease: (() => void) | null = null
  readonly #words: WordJoiner

  constructor(options: PipelineOptions) {
    this.#options = options
    this.#words = new WordJoiner({ world: options.world, tell: (bodies) => this.#tell(bodies) })
  }

  open(): void {
    this.#apply(this.#options.dialogue.open())
  }

  output(chunk: Uint8Array): void {
    if (!this.#options.isTranscript) return this.#pushLines(chunk)
    this.#chunks.push(chunk)
    this.#held += chunk.length
    if (this.#held >= pieceBytes) return this.#pushHeld()
    if (!this.#isScheduled) this.#pushSoon()
  }

  #pushLines(chunk: Uint8Array): void {
    const { dialogue, world } = this.#options
    this.#apply(dialogue.push(chunk))
    if (dialogue.silent === undefined) return
    this.#cancelRelease?.()
    this.#cancelRelease = world.after(silenceMs, () => this.#apply(dialogue.silent!()))
  }

  /** Pushes as soon as a turn brought nothing more: a terminal hands over 4 KiB at a time, however much it has. */
  #pushSoon(): void {
    const { length } = this.#chunks
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      if (this.#held > 0 && this.#chunks.length > length) this.#pushSoon()
      else this.#pushHeld()
    })
  }

  stderr(chunk: Uint8Array): void {
    this.#apply(this.#options.dialogue.pushStderr(chunk))
  }

  input(text: string): void {
    this.#emit([{ kind: 'input', data: { text: this.#options.redact.text(text) } }])
    this.#apply(this.#options.dialogue.input(text))
  }

  /** The harness is about to get an interrupt. */
  interrupt(): void {
    const { dialogue } = this.#options
    if (dialogue.interrupt !== undefined) this.#apply(dialogue.interrupt())
  }

  /** All output was read. */
  end(exit: ProcessExit): void {
    this.#isOver = true
    this.#pushHeld()
    this.#cancelRelease?.()
    if (this.#options.isTranscript) this.#parse(this.#options.redactor.flush())
    this.#apply(this.#options.dialogue.end(exit))
    this.#words.flush()
  }

  #pushHeld(): void {
    if (this.#held === 0) return
    const bytes = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks)
    this.#chunks = []
    this.#held = 0
    const { redactor, world } = this.#options
    this.#parse(redactor.push(bytes))
    this.#cancelRelease?.()
    this.#cancelRelease = redactor.isHolding ? world.after(silenceMs, () => this.#parse(redactor.release())) : null
  }

  #parse(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      this.#apply(this.#options.dialogue.push(bytes.subarray(at, at + pieceBytes)))
    }
  }

  /** Applies an output. Its answers may bring events and questions in turn: a loop takes them, so that no harness can fill the stack. */
  #apply(first: DialogueOutput): void {
    const outputs = [first]
    for (let output = outputs.shift(); output; output = outputs.shift()) {
      this.#emit(output.events)
      if (output.write !== undefined) this.#options.write(output.write)
      if (output.closeInput) this.#options.closeInput()
      for (const ask of output.asks ?? []) this.#answers = this.#answers.then(() => this.#answer(ask))
      if (output.finished) this.#options.onFinished()
      if (output.endNow) this.#options.onEndNow()
    }
  }

  #emit(events: readonly RunEventBody[]): void {
    if (events.length === 0) return
    // A terminal's output is joined as bytes.
    if (this.#options.isTranscript) this.#tell(events)
    else this.#words.take(events)
  }

  #tell(events: readonly RunEventBody[]): void {
    const { isTranscript, redact } = this.#options
    const isRedacted = ({ kind }: RunEventBody) => isTranscript && (kind === 'text' || kind === 'raw')
    this.#options.emit(events.map((body) => (isRedacted(body) ? body : redactBody(body, redact))))
  }

  async #answer(ask: ToolAsk): Promise<void> {
    const reach = await this.#options.lookUp(ask)
    // The harness has left: nobody waits for the answer, and nobody is asked any more.
    if (this.#isOver) return
    const { event, decision } = this.#options.decide(ask, reach)
    this.#emit([event])
    this.#apply(this.#options.dialogue.answer(ask.askId, decision))
  }
}
