import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Question } from '../../shared/api/questions.ts'
import type { Run } from '../../shared/api/runs.ts'
import { noSecrets, outputOf } from '../kit/invariants.ts'
import { waitFor } from '../kit/programs.ts'
import { TestSystem } from '../kit/system.ts'
import { scenario } from '../kit/system-scenario.ts'

// A real run asks a person with the real `svc`: for a secret, which the run that this wakes has, and for an answer it waits for.

let system: TestSystem
beforeAll(async () => {
  system = await TestSystem.start({ device: { isWalled: true } })
})
afterAll(() => system?.stop())

const asking = `svc question ask "To sign the release" --secret-name release-key --provider internal --env RELEASE_KEY`

test('an agent waits for an answer and goes on with it, then asks for a secret; the next run has it in its environment, and nobody else reads it', async () => {
  const run = await scenario(system, {
    steps: [
      'run=[ -n "$RELEASE_KEY" ] || svc question ask "Which colour?" --wait 60000 > answer.json; cat answer.json',
      // The run ends by the question: what follows it is not come to.
      `run=[ -n "$RELEASE_KEY" ] || { ${asking}; sleep 600; }`,
      'run=echo "it is $RELEASE_KEY"; printf %s "$RELEASE_KEY" | base64 -w0; echo',
      'run=printf %s "$RELEASE_KEY" > in-a-file.txt',
      'run=printf %s "$RELEASE_KEY" | sha256sum',
    ],
  })
  const first = await run.start()
  const question = await waitFor(
    async () => (await run.api.call<{ data: Question[] }>('GET', `/questions?runId=${first}`)).data[0] ?? null,
    'the question',
  )
  expect(question).toMatchObject({ status: 'open', waitUntil: expect.any(String) })
  await run.api.insist(`/questions/${question.id}/answer`, { answer: { text: 'Take the red one.' } })
  const ended = await run.api.waitForRun(first, 'succeeded')
  expect(outputOf(await run.api.events(first)).output.toString()).toContain('the red one')
  expect(ended.exitReason).toBe('question_asked')
  expect(ended.waitingOn).toMatchObject({ kind: 'question', label: 'To sign the release' })
  const { data } = await run.api.call<{ data: Question[] }>('GET', '/questions?status=open')
  expect(data).toMatchObject([
    { runId: first, answerMode: 'secret_input', secretRequest: { name: 'release-key', envVarName: 'RELEASE_KEY' } },
  ])

  const value = `kept & secret "${crypto.randomUUID()}"`
  await run.api.insist(`/questions/${data[0]!.id}/secret`, { value })
  const woken = await waitFor(
    async () => {
      const list = await run.api.call<{ data: Run[] }>('GET', '/runs?triggerSource=approval_resolved')
      return list.data[0] ?? null
    },
    'the answer wakes a run',
    { ms: 30_000 },
  )
  const done = await run.api.waitForRun(woken.id, 'succeeded')
  expect(done).toMatchObject({ exitReason: 'completed', parentRunId: first })
  const events = await run.api.events(woken.id)
  const output = outputOf(events).output.toString()
  expect(output).toContain('it is [redacted:RELEASE_KEY]')
  // The program itself had the value.
  const digest = Buffer.from(await crypto.subtle.digest('SHA-256', Buffer.from(value))).toString('hex')
  expect(output).toContain(digest)
  expect(readFileSync(join(run.folder, 'in-a-file.txt'), 'utf8')).toBe(value)

  const told = [events, await run.api.changeSet(woken.id), await run.api.call('GET', `/runs/${woken.id}/context`), data]
  const forms = [value, Buffer.from(value).toString('base64'), JSON.stringify(value).slice(1, -1)]
  for (const form of forms) expect(JSON.stringify(told).includes(form)).toBe(false)
  noSecrets(system, forms)
  const key = join(system.server.dataDir, 'secrets.key')
  expect(statSync(key).mode & 0o777).toBe(0o600)
})
