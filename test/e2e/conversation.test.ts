import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Conversation } from '../../shared/api/conversation-shapes.ts'
import type { Message } from '../../shared/api/messages.ts'
import { makeHome, type Home } from '../cli/run-svc.ts'
import { isLong } from '../kit/forms.ts'
import { waitFor } from '../kit/programs.ts'
import { TestSystem } from '../kit/system.ts'
import { printedLines, scenario, type Scenario } from '../kit/system-scenario.ts'

// A turn from the terminal of a person to a real run on a real device and back, also when the server dies meanwhile.

let system: TestSystem
let home: Home
beforeAll(async () => {
  home = makeHome()
  system = await TestSystem.start({ deviceEnv: { SVC_RECONNECT_MIN_MS: '250', SVC_RECONNECT_MAX_MS: '1000' } })
})
afterAll(async () => {
  await system?.stop()
  home.remove()
})

const makeDm = (run: Scenario) =>
  run.api.insist<Conversation>('/conversations', { kind: 'dm', participants: [run.agentId] })
const messagesOf = async (run: Scenario, id: string) =>
  (await run.api.call<{ data: Message[] }>('GET', `/conversations/${id}/messages`)).data

interface Told {
  event: string
  data: { text?: string; status?: string }
}
const told = (lines: readonly string[]) => lines.map((line) => JSON.parse(line) as Told)
const textOf = (all: readonly Told[]) => all.map(({ data }) => data.text ?? '').join('')

test('the reply is read while the run works, and the server may die under it: each word comes once', async () => {
  const run = await scenario(system, {
    steps: ['prompt', 'lines=20', 'touch=GATES/half', 'await=GATES/go', 'lines=20'],
  })
  const dm = await makeDm(run)
  const env = { SVC_TOKEN: system.server.token, SVC_API_URL: system.server.url }
  const svc = home.start(['conversation', 'send', dm.id, 'Count to forty.', '--output', 'json'], { env })
  await run.reached('half')
  // The words of the first half are there before the run goes on.
  await waitFor(async () => textOf(told(await svc.lines(4))).includes('Count to forty.'), 'the first words are read')
  await system.server.kill9()
  await system.server.start()
  run.open('go')
  const end = await svc.finished
  expect([end.status, end.stderr]).toEqual([0, expect.stringContaining('Opening the stream again')])
  const all = told(end.stdout.trim().split('\n'))
  expect(all[0]).toMatchObject({ event: 'message', data: { body: 'Count to forty.' } })
  expect(all.at(-1)).toMatchObject({ event: 'done', data: { status: 'succeeded' } })
  expect(textOf(all)).toContain(printedLines(40))
  const [sent, reply, ...more] = await messagesOf(run, dm.id)
  expect([sent?.body, more]).toEqual(['Count to forty.', []])
  expect(reply).toMatchObject({ author: { type: 'agent', id: run.agentId } })
  expect(reply?.body).toContain(printedLines(40).replaceAll('\r\n', '\n').trim())
  expect(run.starts()).toBe(1)
})

// In the short form the tests of the API show that, with a device that the test plays.
if (isLong)
  test('a message that is only posted is answered there, too', async () => {
    const run = await scenario(system, { steps: ['lines=2'] })
    const dm = await makeDm(run)
    await run.api.insist<Message>(`/conversations/${dm.id}/messages`, { body: 'Hello.' })
    const messages = await waitFor(async () => {
      const found = await messagesOf(run, dm.id)
      return found.length === 2 && found
    }, 'the agent answered')
    expect(messages[1]?.author).toEqual({ type: 'agent', id: run.agentId })
  })
