import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FakeDevice, type FakeRun } from '../../kit/fake-device.ts'
import { outcomeOf, TestServer } from '../../kit/server.ts'
import { programOf, readFlow, settled, startFlow } from './workflows-kit.ts'

let server: TestServer
let device: FakeDevice
let folder: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'catalog-'))
  server = await TestServer.start({ settings: { SVC_WORKFLOW_CATALOG_DIR: folder } })
  device = await FakeDevice.connect(server)
})
afterAll(async () => {
  await device.disconnect()
  await server.stop()
  rmSync(folder, { recursive: true })
})

describe('the catalog', () => {
  it('lists built-in programs with their inputs, and returns their source', async () => {
    const { data } = await server.ok('/workflows/catalog')
    expect(data).toMatchObject([
      { object: 'workflow_program', name: 'fix_failing_checks' },
      {
        object: 'workflow_program',
        name: 'implement_and_review',
        inputs: [{ key: 'work' }, { key: 'taskRef' }, {}, {}, {}],
      },
    ])
    const { source } = await server.ok('/workflows/source?workflow=implement_and_review')
    expect(source).toMatch(/^export const meta = \{\n  name: 'implement_and_review'/)
    expect(outcomeOf(await server.call('/workflows/source?workflow=none'))).toBe('404 resource_not_found')
  })

  it('has them among the workflows, under names that a workspace cannot take', async () => {
    const { data } = await server.ok('/workflows/records')
    expect(data.find((row: { name: string }) => row.name === 'implement_and_review')).toMatchObject({
      id: null,
      version: null,
      author: null,
      runCount: 0,
    })
    const create = (source: string) => server.call('/workflows/records', { body: { source } })
    expect(outcomeOf(await create(programOf('return 1', { name: 'implement_and_review' })))).toBe(
      '409 workflow_name_taken',
    )
  })

  it("has the programs of the operator's folder as it is now, and says when one cannot be run", async () => {
    writeFileSync(join(folder, 'own.js'), programOf('return 7', { name: 'own', title: 'Own' }))
    const names = async () => (await server.ok('/workflows/catalog')).data.map((row: { name: string }) => row.name)
    expect(await names()).toEqual(['fix_failing_checks', 'implement_and_review', 'own'])
    const id = await startFlow(server, 'own')
    await settled(server)
    expect(await readFlow(server, id)).toMatchObject({ status: 'completed', summary: '7' })
    writeFileSync(join(folder, 'bad.js'), 'return fetch')
    expect(outcomeOf(await server.call('/workflows/catalog'))).toBe('502 workflows_catalog_unavailable')
    const source = await server.call('/workflows/source?workflow=own')
    expect(outcomeOf(source)).toBe('502 workflow_source_unavailable')
    // What needs none of them works on.
    expect((await server.ok('/workflows/records')).data).toEqual([])
    rmSync(join(folder, 'bad.js'))
    expect(await names()).toEqual(['fix_failing_checks', 'implement_and_review', 'own'])
  })
})

describe('implement_and_review', () => {
  const say = async (run: FakeRun, text: string) => {
    await run.events({ kind: 'session', data: { sessionId: 'ses-work' } })
    await run.events({ kind: 'result', data: { text, isError: false } })
    await run.end('completed', { sessionId: 'ses-work' })
  }
  const judge = async (run: FakeRun, data: unknown) => {
    await server.ok('/runs/current/output', { token: run.token, body: { schema: 'output', data } })
    await run.end('completed')
  }

  it('has the work reviewed, what is found fixed in the same session, and reviewed again', async () => {
    const worker = await server.createAgent({ harness: 'claude' })
    const reviewer = await server.createAgent({ harness: 'claude' })
    const input = { work: 'Add a login page', implementer: worker.handle, reviewer: reviewer.handle }
    const id = await startFlow(server, 'implement_and_review', { input })
    const first = await device.take()
    expect(first.spec).toMatchObject({ agent: { id: worker.id }, prompt: expect.stringContaining('Add a login page') })
    await say(first, 'Added it')
    const review = await device.take()
    expect(review.spec).toMatchObject({ agent: { id: reviewer.id }, prompt: expect.stringContaining('Added it') })
    await judge(review, { verdict: 'request_changes', findings: ['login.ts: no test'] })
    const fix = await device.take()
    expect(fix.spec).toMatchObject({
      resumeSessionId: 'ses-work',
      prompt: expect.stringContaining('login.ts: no test'),
    })
    await say(fix, 'Tested it')
    await judge(await device.take(), { verdict: 'approve', findings: [] })
    await settled(server)
    const ended = await readFlow(server, id)
    expect(ended).toMatchObject({ status: 'completed', summary: 'Approved in review 2.\n\nTested it' })
    expect(ended.steps.map((step: { label: string }) => step.label)).toEqual([
      'implement',
      'review 1',
      'fix 1',
      'review 2',
    ])
  })

  it('ends with what is left to do after its last review, and needs to know its work', async () => {
    const worker = await server.createAgent({ harness: 'claude' })
    const input = { work: 'Paint', implementer: worker.handle, reviewer: worker.handle, rounds: 1 }
    const id = await startFlow(server, 'implement_and_review', { input })
    await say(await device.take(), 'Painted')
    await judge(await device.take(), { verdict: 'request_changes', findings: ['red, not blue'] })
    await settled(server)
    expect((await readFlow(server, id)).summary).toBe('Not approved after 1 review. Left to do:\n- red, not blue')
    const without = await startFlow(server, 'implement_and_review')
    await settled(server)
    expect(await readFlow(server, without)).toMatchObject({
      status: 'failed',
      summary: expect.stringContaining('work or taskRef'),
    })
  })
})
