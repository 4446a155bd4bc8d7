import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { waitFor } from '../../kit/programs.ts'
import { servedBy } from '../../kit/real-harness.ts'
import { claudeDriver, codexDriver } from './drivers.ts'
import { dataOf, ended, newAgent, requestsOf, successorOf, type Stage } from './stage.ts'

/**
 * MCP servers of a workspace, and then its limit, with Claude Code; Codex goes on with its task, and with the daemon dead for a while.
 * No other run may begin beside it, and none of Claude's after it.
 */
export function serverCases(stageOf: () => Stage): void {
  test("the workspace's MCP servers: a rule allows one, strict denies the other, and one without its secret is left out; a limit with a time ends the run, another run waits for that time, and the task is finished by the real codex, whose daemon is killed and started again meanwhile", async () => {
    const stage = stageOf()
    const { api, device, stub } = stage
    const { id: workspaceId } = await api.call<{ id: string }>('GET', '/workspaces')
    const allow = ['mcp__files__*', 'Bash(sh wait.sh)']
    const permissions = { tools: { allow, ask: [], deny: [], defaultMode: 'strict' } }
    const agent = await newAgent(stage, 'Served', { config: { permissions }, fallbackHarness: 'codex' })
    const at = (name: string) => join(agent.folder, name)
    writeFileSync(at('wait.sh'), 'touch begun\nuntil [ -e go ]; do sleep 0.1; done\necho It "is" over\n')
    const value = 'a-value-of-a-secret'
    await api.call('POST', '/secrets', { name: 'files', envVarName: 'FILES_TOKEN', value, agentId: agent.id })
    const server = servedBy('FILES_TOKEN')['files']
    const mcpServers = { files: server, other: server, lost: { url: 'https://${NOT_SET}/mcp' }, 'no name': server }
    await api.call('PATCH', `/workspaces/${workspaceId}`, { mcpServers })
    const say = (name: string) => ({ name: `mcp__${name}__say`, input: { text: 'hey' } })
    const resetsAt = Math.ceil(Date.now() / 1000) + 3_600
    const limited = Array.from({ length: 10 }, () => ({ error: claudeDriver.limit!.error(resetsAt) }))
    await stub.script({
      claude: { steps: [{ text: 'I begin.', tools: [say('files'), say('other')] }, ...limited] },
      codex: {
        // It may tell its model of a call that lasts before the call is over: it is then waited for once more.
        rules: [{ when: 'It is over', text: 'Done.', usage: { input: 400, output: 40 } }],
        steps: [{ text: 'I go on.', tool: codexDriver.shell('sh wait.sh'), usage: { input: 300, output: 30 } }],
      },
    })
    const { key } = await api.insist<{ key: string }>('/tasks', { title: 'Say it', assignee: agent.id })
    const runs = async () => (await api.call<{ data: { id: string }[] }>('GET', `/runs?task=${key}`)).data
    const runId = await waitFor(async () => (await runs())[0]?.id, 'the assignment wakes a run')
    await api.waitForRun(runId, 'failed')
    await api.call('PATCH', `/workspaces/${workspaceId}`, { mcpServers: null })
    const { events } = await ended(stage, runId, 'rate_limited')
    expect(dataOf(events, 'error').filter((error) => error['class'] === 'mcp_server_left_out')).toEqual([
      {
        class: 'mcp_server_left_out',
        message: "The run goes without the MCP server lost: not set in the run's environment: NOT_SET.",
        willRetry: false,
      },
    ])
    expect(dataOf(events, 'permission')).toMatchObject([
      { name: 'mcp__files__say', decision: 'allow', rule: 'mcp__files__*' },
      { name: 'mcp__other__say', decision: 'deny' },
    ])
    const results = dataOf(events, 'tool_result')
    expect(results.filter(({ isError }) => isError === true)).toHaveLength(1)
    // The server had the secret; the log of the run has it not.
    expect(results.find(({ isError }) => isError === false)?.['output']).toMatch(/^said hey with .* else$/)
    expect(JSON.stringify((await requestsOf(stage)).at(-1)?.body)).toContain(`said hey with ${value} else`)
    expect(JSON.stringify(events)).not.toContain(value)
    const manifest = await api.call('GET', `/runs/${runId}/manifest`)
    expect(manifest).toMatchObject({
      mcpServers: { given: ['files', 'other', 'lost'], leftOut: [{ name: 'no name', reason: 'name' }] },
    })
    expect((await device.status()).limits).toMatchObject([{ resetsAt: resetsAt * 1000 }])
    const { id: other } = await newAgent(stage, 'Waiting')
    const waiting = await api.startRun(other, 'Not before that.')
    expect(await api.run(waiting)).toMatchObject({
      status: 'queued',
      gateReason: 'rate_limit',
      gateDescription: expect.stringContaining(new Date(resetsAt * 1000).toISOString()),
    })
    await api.cancel(waiting)

    const successor = await successorOf(stage, runId)
    await waitFor(() => existsSync(at('begun')), 'the tool of the successor runs', { ms: 90_000 })
    await device.kill9()
    await device.start()
    writeFileSync(at('go'), '')
    const done = await ended(stage, successor, 'completed')
    expect(done.run).toMatchObject({ harness: { id: 'codex' }, task: { id: key }, parentRunId: runId })
    expect(dataOf(done.events, 'result')).toMatchObject([{ text: 'Done.' }])
    expect(dataOf(done.events, 'usage').at(-1)).toMatchObject({ inputTokens: 700, outputTokens: 70 })
    const first = (await stub.requests()).find(({ scenario }) => scenario === 'codex')
    expect(JSON.stringify(first?.body)).toContain('Go on where you stopped')
  })
}
