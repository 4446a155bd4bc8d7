import type { HarnessDialogue, ProcessExit } from '../../device-manager/harness/adapter.ts'
import { streamRedactor, wholeValues } from '../../device-manager/run-host/output/redaction.ts'
import { Redactor } from '../../shared/lib/redact.ts'
import { merged } from './harness-recordings.ts'

export const killed: ProcessExit = { exitCode: null, signal: 'SIGKILL', stoppedFor: null }
/** In the words of a model, where nobody may see it. */
export const secret = 'correct-horse-battery-staple'
export const line = (value: unknown) => Buffer.from(`${JSON.stringify(value)}\n`)

type Redaction = { redactText: (text: string) => string; redactStream: () => ReturnType<typeof streamRedactor> }

/** Plays lines of a harness to its dialogue, after those by which it says that it is ready, and kills it. */
export function toldWords(dialogueWith: (redaction: Redaction) => HarnessDialogue, ready: readonly Uint8Array[]) {
  const secrets = [{ name: 'VAULT', value: secret }]
  const play = (...lines: Uint8Array[]) => {
    const dialogue = dialogueWith({
      redactText: wholeValues(new Redactor(secrets)).text,
      redactStream: () => streamRedactor(new Redactor(secrets)),
    })
    const outputs = [dialogue.open(), ...[...ready, ...lines].map((each) => dialogue.push(each)), dialogue.end(killed)]
    return { events: merged(outputs).events, dialogue }
  }
  /** Each event with its text, but those of the session. */
  const told = (...lines: Uint8Array[]) =>
    play(...lines)
      .events.filter(({ kind }) => kind !== 'session')
      .map(({ kind, data }) => [kind, 'text' in data ? data.text : null])
  const said = (...lines: Uint8Array[]) =>
    told(...lines)
      .filter(([kind]) => kind === 'text')
      .map(([, text]) => text)
      .join('')
  return { play, told, said }
}
