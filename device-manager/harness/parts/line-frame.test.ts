import { expect, it } from 'vitest'
import { outputBytes } from '../../../test/kit/harness-recordings.ts'
import { redactBody, streamRedactor, wholeValues } from '../../run-host/output/redaction.ts'
import { Redactor } from '../../../shared/lib/redact.ts'
import { lineFrame } from './line-frame.ts'

const secret = 'correct-horse-battery-staple'
const secrets = [{ name: 'VAULT', value: secret }]
const frame = () => {
  const facts = { stderrTail: '' }
  const options = {
    redactText: wholeValues(new Redactor(secrets)).text,
    redactStream: () => streamRedactor(new Redactor(secrets)),
  }
  return { facts, ...lineFrame({ facts, line: () => ({ events: [] }) }, options, 100_000) }
}
const pieces = (text: string, size: number) =>
  Array.from({ length: Math.ceil(text.length / size) }, (_, at) => Buffer.from(text.slice(at * size, (at + 1) * size)))

it.each([
  ['stdout', '\n'],
  ['stdout', ''],
  ['stderr', '\n'],
  ['stderr', ''],
] as const)('a secret across the parts of a line of %s that is too long is taken out (%j)', (stream, end) => {
  const line = `${'x'.repeat(110_000)}${`${secret} `.repeat(300)}${end}`
  const { pushStderr, push, end: ended, facts } = frame()
  const read = stream === 'stdout' ? push : pushStderr
  // Of such a size that the secrets are cut at many places.
  const events = [...pieces(line, 1_001).map(read), ended()].flatMap((output) => output.events)
  const kept = Buffer.concat(events.map((event) => outputBytes(event)!)).toString()
  expect(kept.slice(110_000)).toBe(line.slice(110_000).replaceAll(secret, '[redacted:VAULT]'))
  if (stream === 'stderr') expect(facts.stderrTail).not.toMatch(/correct|staple/)
})

it('what is held back of such a line comes with its end', () => {
  const { push } = frame()
  const events = [...pieces(`${'x'.repeat(110_000)} correct-ho\n`, 1_001), Buffer.from('noise\n')]
    .map(push)
    .flatMap((output) => output.events)
  const kept = Buffer.concat(events.map((event) => outputBytes(event)!)).toString()
  expect(kept.slice(110_000)).toBe(' correct-ho\nnoise\n')
  expect(outputBytes(events.at(-1)!)?.toString()).toBe('noise\n')
})

it('a secret is taken out of a long line that is no text, wherever it is cut into events', () => {
  const { push } = frame()
  const line = Buffer.concat([Buffer.from([0xff]), Buffer.from(`${`${secret} `.repeat(3_000)}\n`)])
  // As the run host does with each event.
  const events = push(line).events.map((event) => redactBody(event, wholeValues(new Redactor(secrets))))
  const kept = Buffer.concat(events.map((event) => outputBytes(event)!)).toString('latin1')
  expect(kept).toBe(line.toString('latin1').replaceAll(secret, '[redacted:VAULT]'))
})
