import { afterAll, beforeAll, expect, it } from 'vitest'
import { claudeMachine, driveClaude } from '../../kit/real-claude.ts'
import { fetchHarness, type HarnessMachine } from '../../kit/real-harness.ts'
import { TestServer, type AgentCaller } from '../../kit/server.ts'
import { startStubLlm, type StubLlm, type StubStep } from '../../kit/stub-llm.ts'

// The real claude as a client of `/api/v1/mcp`; only the model is scripted.

const found = fetchHarness('claude')
if ('missing' in found) process.stderr.write(`\n*** NOT TESTED: the real claude is not here. ${found.missing}\n\n`)

let server: TestServer, stub: StubLlm, machine: HarnessMachine, caller: AgentCaller
beforeAll(async () => {
  server = await TestServer.start()
  stub = await startStubLlm()
  caller = await server.agentCaller()
})
afterAll(async () => {
  await machine?.remove()
  await stub?.stop()
  await server?.stop()
})

const call = (name: string, input: Record<string, unknown>): StubStep => ({
  tool: { name: `mcp__svc__${name}`, input },
})

it.skipIf('missing' in found)(
  'makes a task, reads the wiki, and is refused what only a person may do',
  async () => {
    const page = await server.ok('/wiki/pages', { body: { title: 'Ferries', body: 'They leave at noon.' } })
    machine = claudeMachine({
      binDir: 'binDir' in found ? found.binDir : '',
      baseUrl: `${stub.url}/s/run`,
      apiKey: 'dummy',
    })
    await stub.script({
      run: {
        steps: [
          call('task_create', { title: 'Ask for the timetable' }),
          call('wiki_get', { id: page.id }),
          call('call_route', { route: 'members.list', arguments: {} }),
          { text: 'Done.' },
        ],
      },
    })
    const run = driveClaude({
      machine,
      version: '2.1.329',
      spec: {
        prompt: 'Do it.',
        mcpServers: {
          svc: {
            type: 'http',
            url: `${server.plane.localUrl}/api/v1/mcp`,
            headers: { Authorization: `Bearer ${caller.token}` },
          },
        },
      },
    })
    expect((await run.done).outcome).toMatchObject({ exitReason: 'completed' })
    const results = run.events.flatMap((event) => (event.kind === 'tool_result' ? [event.data] : []))
    expect(results.map(({ isError }) => isError)).toEqual([false, false, true])
    const [made, read, refused] = results.map(({ output }) => JSON.stringify(output))
    expect(made).toContain('Ask for the timetable')
    expect(read).toContain('They leave at noon.')
    const direct = await server.call('/members', { token: caller.token })
    expect(refused).toContain(direct.body.error.code)
    const { data } = await server.ok('/tasks')
    expect(data.map((task: { title: string }) => task.title)).toContain('Ask for the timetable')
  },
  120_000,
)
