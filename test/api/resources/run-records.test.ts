import { tried } from '../../../shared/runs/wall-acts.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { idFrom } from '../../../shared/lib/ids.ts'
import type { ChangeSetResult } from '../../../shared/device/change-set.ts'
import { findDetails } from '../../../control-plane/resources/runs/details-store.ts'
import { FakeDevice, type FakeRun } from '../../kit/fake-device.ts'
import { halfRequest } from '../../kit/half-request.ts'
import { outcomeOf, TestServer } from '../../kit/server.ts'
import { isTriedHere } from '../../kit/replicas.ts'
import { endRun } from '../../kit/end-run.ts'

let server: TestServer
let device: FakeDevice
let agentId: string
beforeAll(async () => {
  server = await TestServer.start({ costlyMs: 500 })
  device = await FakeDevice.connect(server)
  agentId = (await server.createAgent({ name: 'Recorder', identityMd: 'Secret plans', maxTurns: 9 })).id
})
afterAll(async () => {
  await device.disconnect()
  await server.stop()
})

async function begin(body: Record<string, unknown> = {}): Promise<FakeRun> {
  await server.startRun(agentId, body)
  return device.take()
}
const read = (runId: string, what: string) => server.call(`/runs/${runId}/${what}`)
const root = () => server.database.root

describe('context', () => {
  test('is the prompt the harness received', async () => {
    const run = await begin({ prompt: 'Count the files' })
    expect((await read(run.runId, 'context')).body).toEqual({ prompt: 'Count the files' })
    expect(run.spec.prompt).toBe('Count the files')
    await root()('run_details').where({ run_id: run.runId }).update({ prompt: null })
    expect(outcomeOf(await read(run.runId, 'context'))).toBe('404 run.context_not_stored')
    await root()('run_details').where({ run_id: run.runId }).delete()
    expect(outcomeOf(await read(run.runId, 'context'))).toBe('404 run.context_not_stored')
    expect(outcomeOf(await read('run_0000000000000000', 'context'))).toBe('404 resource_not_found')
    expect(outcomeOf(await read('x', 'context'))).toBe('400 invalid_id_format')
    await run.end()
  })

  test('that names more files than a statement takes is shown without those that are not there', async () => {
    const run = await begin()
    const named = Array.from(
      { length: 70_000 },
      (_, n) => `- file_${String(n).padStart(16, '0')} "a" (text/plain, 1 bytes)`,
    )
    const prompt = ['Before.', ...named, 'After.'].join('\n')
    await root()('run_details').where({ run_id: run.runId }).update({ prompt })
    expect((await read(run.runId, 'context')).body).toEqual({ prompt: 'Before.\nAfter.' })
    await run.end()
  })
})

describe('manifest', () => {
  test('says what was tried of the wall, as the device that has the run told it first, or at the end', async () => {
    const acts = [tried('read_host', 'refused', 'the token'), tried('metadata', 'not_applicable', 'It has a network.')]
    const wallOf = async (runId: string) => (await read(runId, 'manifest')).body.wall
    const run = await begin()
    const { runId, fence } = run
    expect(await wallOf(runId)).toBeNull()
    const lie = [tried('read_host', 'not_refused', 'a lie')]
    const liar = await FakeDevice.connect(server)
    liar.send({ type: 'run.wall', runId, fence, acts: lie })
    device.send({ type: 'run.wall', runId, fence: fence + 1, acts: lie })
    await Promise.all([liar.beat(), device.beat()])
    expect(await wallOf(runId)).toBeNull()
    device.send({ type: 'run.wall', runId, fence, acts })
    await device.beat()
    expect(await wallOf(runId)).toEqual(acts)
    device.send({ type: 'run.wall', runId, fence, acts: lie })
    await run.end('completed', { wall: lie })
    expect(await wallOf(runId)).toEqual(acts)
    await liar.disconnect()
    const other = await begin()
    await other.end('completed', { wall: acts })
    expect(await wallOf(other.runId)).toEqual(acts)
  })

  test("names the workspace's MCP servers that the run was given, and the others, as the doctor does", async () => {
    const { id: workspaceId } = await server.ok('/workspaces')
    const set = (mcpServers: object | null) =>
      server.ok(`/workspaces/${workspaceId}`, { method: 'PATCH', body: { mcpServers } })
    const web = { type: 'http', url: 'https://x.test', headers: { 'X-Key': 'value' } }
    await set({ web, 'bad name': web, words: 'value' })
    const agent = await server.createAgent({ harness: 'claude', command: null })
    await server.startRun(agent.id)
    const run = await device.take()
    const { runId } = run
    expect(run.spec.mcpServers).toEqual({ web })
    const { body } = await read(runId, 'manifest')
    expect(body.mcpServers).toEqual({
      given: ['web'],
      leftOut: [
        { name: 'bad name', reason: 'name' },
        { name: 'words', reason: 'unreadable' },
      ],
    })
    expect(JSON.stringify(body)).not.toContain('value')
    const { audit } = await server.ok(`/agents/${agent.id}/audit`)
    const ignored = audit.filter(({ code }: { code: string }) => code === 'mcp_server_ignored')
    expect(ignored).toMatchObject([
      { message: expect.stringContaining('bad name: ') },
      { message: expect.stringContaining('words: ') },
    ])
    const plain = await begin()
    expect((await read(plain.runId, 'manifest')).body.mcpServers.leftOut).toHaveLength(3)
    expect(plain.spec.mcpServers).toEqual({})
    await plain.end()
    // One of a server that knew none of this.
    const manifest = JSON.stringify({ rules: [], envKeys: [] })
    await root()('run_details').where({ run_id: runId }).update({ manifest })
    expect((await read(runId, 'manifest')).body.mcpServers).toEqual({ given: ['web'], leftOut: [] })
    await run.end()
    await set(null)
  })

  test('names the version of the program that drove the run, as the run does, once its device told it', async () => {
    const run = await begin()
    expect((await read(run.runId, 'manifest')).body.harnessVersion).toBeNull()
    expect((await server.ok(`/runs/${run.runId}`)).harness).toEqual({ id: 'command' })
    await run.end('completed', { harnessVersion: '2.1.329' })
    expect((await read(run.runId, 'manifest')).body.harnessVersion).toBe('2.1.329')
    expect((await server.ok(`/runs/${run.runId}`)).harness).toEqual({ id: 'command', version: '2.1.329' })
    const untold = await begin()
    await untold.end()
    expect((await server.ok(`/runs/${untold.runId}`)).harness).toEqual({ id: 'command' })
  })

  test('is the setup without secrets', async () => {
    const run = await begin()
    const { body } = await read(run.runId, 'manifest')
    expect(body).toMatchObject({
      runId: run.runId,
      agent: { id: agentId, handle: '@recorder', name: 'Recorder' },
      harness: 'command',
      maxTurns: 9,
      ignored: ['maxTurns'],
      folder: null,
      rules: [expect.stringContaining('You run unattended')],
      instructions: [{ name: 'svc', sha256: expect.stringMatching(/^[0-9a-f]{64}$/) }, { name: 'AGENT.md' }],
      skills: [],
      permissions: { allow: [], ask: [], deny: [], defaultMode: 'full' },
    })
    const ofEach = ['SVC_API_URL', 'SVC_TOKEN', 'SVC_RUN_ID', 'SVC_AGENT_ID']
    expect(body.envKeys).toEqual([...ofEach, 'SVC_PROMPT', 'SVC_PROMPT_FILE', 'SVC_INSTRUCTIONS_FILE'])
    // Only a command is told its prompt there, and not where it speaks a protocol. The device takes none of theirs.
    const person = await server.addPerson('member')
    for (const other of [
      { harness: 'claude', command: null },
      { harness: 'command', protocol: 'acp' },
    ]) {
      const agent = await server.createAgent(other, person.token)
      const runId = await server.startRun(agent.id, {}, person.token)
      const { envKeys } = await server.ok(`/runs/${runId}/manifest`)
      expect(envKeys).toEqual(ofEach)
    }
    expect(JSON.stringify(body)).not.toContain(run.token)
    await root()('run_details').where({ run_id: run.runId }).update({ manifest: null })
    expect(outcomeOf(await read(run.runId, 'manifest'))).toBe('404 run.manifest_not_pinned')
    expect(outcomeOf(await read('run_0000000000000000', 'manifest'))).toBe('404 resource_not_found')
    await run.end()
  })
})

const changed = (diff: string): Extract<ChangeSetResult, { ok: true }> => ({
  ok: true,
  changeSet: {
    base: { commit: 'a'.repeat(40), branch: 'main' },
    head: { commit: 'b'.repeat(40), branch: 'main' },
    files: [
      {
        path: 'x',
        oldPath: null,
        status: 'modified',
        oldMode: '100644',
        newMode: '100644',
        kind: 'file',
        binary: false,
        additions: 1,
        deletions: 0,
        patchOmitted: false,
      },
    ],
    additions: 1,
    deletions: 0,
    diff,
    capturedAt: 1_760_000_000_000,
  },
})

describe('change-set', () => {
  test('names the runs that worked in the folder meanwhile, as the device tells; one that does not tell has none', async () => {
    const sharedWith = ['run_0000000000000001', 'run_0000000000000002']
    const endWith = async (result: ChangeSetResult) => {
      const run = await begin()
      const { runId, fence } = run
      device.sendChangeSet({ runId, fence, requestId: null }, result)
      await run.end()
      return (await read(runId, 'change-set')).body
    }
    const { changeSet } = changed('a diff')
    expect(
      await endWith({ ok: true, changeSet: { ...changeSet, sharedWith: sharedWith.map((id) => idFrom(id)) } }),
    ).toMatchObject({
      sharedWith,
      live: false,
    })
    expect((await endWith({ ok: true, changeSet })).sharedWith).toEqual([])
  })

  test('of a live run comes from its device now, of an ended run from what was stored', async () => {
    const run = await begin()
    device.changeSetAnswer = () => changed('live diff')
    const live = await read(run.runId, 'change-set')
    expect(live.body).toEqual({
      runId: run.runId,
      base: { commit: 'a'.repeat(40), branch: 'main' },
      head: { commit: 'b'.repeat(40), branch: 'main' },
      files: [expect.objectContaining({ path: 'x', status: 'modified' })],
      additions: 1,
      deletions: 0,
      diff: 'live diff',
      live: true,
      sharedWith: [],
      capturedAt: new Date(1_760_000_000_000).toISOString(),
    })
    device.changeSetAnswer = null
    device.sendChangeSet({ runId: run.runId, fence: run.fence, requestId: null }, changed('last diff'))
    await run.end()
    expect((await read(run.runId, 'change-set')).body).toMatchObject({ live: false, diff: 'last diff' })
  })

  test('what the device says it cannot do is told with its code, live and stored', async () => {
    const statuses = { source_unknown: 404, repo_unavailable: 409, too_large: 413, diff_unavailable: 502 } as const
    for (const [code, status] of Object.entries(statuses)) {
      const failed = { ok: false, code: code as keyof typeof statuses, message: `because of ${code}` } as const
      const run = await begin()
      device.changeSetAnswer = () => failed
      expect(outcomeOf(await read(run.runId, 'change-set'))).toBe(`${status} ${code}`)
      device.changeSetAnswer = null
      device.sendChangeSet({ runId: run.runId, fence: run.fence, requestId: null }, failed)
      await run.end()
      const stored = await read(run.runId, 'change-set')
      expect(outcomeOf(stored)).toBe(`${status} ${code}`)
      expect(stored.body.error.message).toBe(`because of ${code}`)
    }
  })

  test('a question on its way ends with the link of the device', async () => {
    const person = await server.addPerson('member')
    const agent = await server.createAgent({}, person.token)
    const going = await FakeDevice.connect(server, { token: person.token })
    await server.startRun(agent.id)
    const run = await going.take()
    const asked = read(run.runId, 'change-set')
    await going.next('change_set.get')
    await going.disconnect()
    expect(outcomeOf(await asked)).toBe('409 repo_unavailable')
  })

  test('is unknown before the run works, unavailable when its device is away or sent none', async () => {
    const person = await server.addPerson('member')
    const agent = await server.createAgent({}, person.token)
    const waiting = await server.startRun(agent.id)
    expect(outcomeOf(await read(waiting, 'change-set'))).toBe('404 source_unknown')
    const away = await FakeDevice.connect(server, { token: person.token })
    const run = await away.take()
    await away.disconnect()
    await expect.poll(async () => outcomeOf(await read(run.runId, 'change-set'))).toBe('409 repo_unavailable')
    await endRun(root(), {
      runId: run.runId,
      fence: null,
      exitReason: 'runner_lost',
      errorMessage: null,
      at: server.world.now(),
    })
    expect(outcomeOf(await read(run.runId, 'change-set'))).toBe('502 diff_unavailable')
    expect(outcomeOf(await read('run_0000000000000000', 'change-set'))).toBe('404 resource_not_found')
  })

  test.each(['dispatch_error', 'harness_start_failed'] as const)(
    'is unknown of a run that its device could not begin: %s',
    async (exitReason) => {
      const run = await begin()
      const errorMessage = 'The folder /work does not exist on this device.'
      await endRun(root(), { runId: run.runId, fence: null, exitReason, errorMessage, at: server.world.now() })
      expect(outcomeOf(await read(run.runId, 'change-set'))).toBe('404 source_unknown')
    },
  )
})

describe('output', () => {
  const record = (runId: string, token: string | undefined, body: unknown) =>
    server.call(`/runs/${runId}/output`, { body, ...(token === undefined ? {} : { token }) })

  test('is recorded by the run itself, and the last one counts', async () => {
    const run = await begin()
    for (const data of [{ answer: [1, null, 'x'] }, 'text', null, false, 0]) {
      const reply = await record('current', run.token, { data })
      expect(reply.status).toBe(200)
      expect(reply.body).toEqual({ runId: run.runId, recorded: true })
      expect((await findDetails(root(), run.runId))?.output).toEqual(data)
    }
    expect((await record(run.runId, run.token, { data: 'x'.repeat(2_000_000) })).status).toBe(200)
    expect(outcomeOf(await record(run.runId, run.token, { data: 'x'.repeat(2 * 1024 * 1024) }))).toBe(
      '413 payload_too_large',
    )
    expect(outcomeOf(await record('current', run.token, {}))).toBe('400 validation_error')
    await run.end()
  })

  test('is refused to everybody else', async () => {
    const [run, other] = [await begin(), await begin()]
    expect(outcomeOf(await record(run.runId, undefined, { data: 1 }))).toBe('403 run_output.not_this_run')
    expect(outcomeOf(await record(run.runId, other.token, { data: 1 }))).toBe('403 run_output.not_this_run')
    expect(outcomeOf(await record('run_0000000000000000', other.token, { data: 1 }))).toBe('404 resource_not_found')
    await run.end()
    await other.end()
    expect(outcomeOf(await record(run.runId, run.token, { data: 1 }))).toBe('401 auth_revoked')
  })

  test('comes too late when the run ends while it is sent', async () => {
    const run = await begin()
    const between = () => run.end()
    const reply = await halfRequest(server, '/runs/current/output', { token: run.token, body: { data: 1 }, between })
    expect(outcomeOf(reply)).toBe('409 run_output.run_terminal')
  })

  test('a schema that is named must be known', async () => {
    const run = await begin({ outputSchemas: { Invoice: { type: 'object' } } })
    const reply = await record('current', run.token, { schema: 'Bill', data: {} })
    expect(outcomeOf(reply)).toBe('422 run_output.invalid')
    expect(reply.body.error).toMatchObject({ param: 'schema', allowedValues: ['Invoice'] })
    for (const name of ['toString', '__proto__'])
      expect(outcomeOf(await record('current', run.token, { schema: name, data: {} }))).toBe('422 run_output.invalid')
    await run.end()
  })

  const invoice = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: {
      total: { type: 'integer', minimum: 0 },
      lines: { type: 'array', items: { $ref: '#/$defs/line' }, minItems: 1 },
    },
    required: ['total', 'lines'],
    unevaluatedProperties: false,
    $defs: { line: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] } },
  }

  test('data must fit the schema that is named, and is read back with its name', async () => {
    const run = await begin({ outputSchemas: { Invoice: invoice, Note: { type: 'string' } } })
    const misfits: [unknown, string][] = [
      ['text', 'data'],
      [{ total: 1 }, 'data.lines'],
      [{ total: -1, lines: [{ text: 'x' }] }, 'data.total'],
      [{ total: 1, lines: [{ text: 'x' }, {}] }, 'data.lines.1.text'],
      [{ total: 1, lines: [{ text: 'x' }], more: true }, 'data.more'],
    ]
    for (const [data, param] of misfits) {
      const reply = await record('current', run.token, { schema: 'Invoice', data })
      expect([outcomeOf(reply), reply.body.error.param]).toEqual(['422 run_output.invalid', param])
    }
    expect(outcomeOf(await read(run.runId, 'output'))).toBe('404 resource_not_found')
    const data = { total: 3, lines: [{ text: 'x' }] }
    expect((await record('current', run.token, { schema: 'Invoice', data })).status).toBe(200)
    expect((await read(run.runId, 'output')).body).toEqual({
      runId: run.runId,
      schema: 'Invoice',
      data,
      recordedAt: expect.any(String),
    })
    await record('current', run.token, { data: 5 })
    expect((await read(run.runId, 'output')).body).toMatchObject({ schema: null, data: 5 })
    expect((await server.ok('/runs/current/manifest', { token: run.token })).outputSchemas).toEqual({
      Invoice: invoice,
      Note: { type: 'string' },
    })
    await run.end()
  })

  test('a run that continues another one knows its schemas', async () => {
    const first = await begin({ outputSchemas: { Note: { type: 'string' } } })
    await first.end('interrupted')
    await server.ok(`/runs/${first.runId}/retry`, { body: {} })
    const second = await device.take()
    expect(outcomeOf(await record('current', second.token, { schema: 'Note', data: 1 }))).toBe('422 run_output.invalid')
    expect((await record('current', second.token, { schema: 'Note', data: 'fits' })).status).toBe(200)
    await second.end()
  })

  if (isTriedHere)
    test('what is no schema is refused when the run is started; one that takes for ever ends the check', async () => {
      const start = (outputSchemas: unknown) => server.call(`/agents/${agentId}/runs`, { body: { outputSchemas } })
      for (const schema of [
        { type: 'nothing' },
        { $ref: '#/$defs/missing' },
        { $ref: 'https://example.com/schema.json' },
        { pattern: '(' },
        { $async: true },
      ]) {
        const reply = await start({ Bad: schema })
        expect([outcomeOf(reply), reply.body.error.param]).toEqual(['400 validation_error', 'outputSchemas.Bad'])
      }
      const many = Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`S${at}`, {}]))
      for (const schemas of [many, { 'a b': {} }, { Large: { description: 'x'.repeat(70_000) } }, { No: true }])
        expect(outcomeOf(await start(schemas))).toBe('400 validation_error')
      const run = await begin({ outputSchemas: { Slow: { type: 'string', pattern: '^(a+)+$' } } })
      const reply = await record('current', run.token, { schema: 'Slow', data: `${'a'.repeat(40)}!` })
      expect(outcomeOf(reply)).toBe('422 run_output.invalid')
      expect(reply.body.error.message).toContain('too long')
      await run.end()
    })

  if (isTriedHere)
    test('while the schema of one takes for ever, others are answered', async () => {
      const run = await begin({ outputSchemas: { Slow: { type: 'string', pattern: '^(a+)+$' } } })
      const answered: string[] = []
      const data = `${'a'.repeat(60)}!`
      const slow = record('current', run.token, { schema: 'Slow', data }).then(() => answered.push('slow'))
      // A write, too: nothing is locked while it is checked.
      for (let count = 0; count < 8; count++)
        await server.ok(`/agents/${agentId}`, { method: 'PATCH', body: { description: `Changed meanwhile ${count}` } })
      answered.push('others')
      await slow
      expect(answered).toEqual(['others', 'slow'])
      await run.end()
    })
})
