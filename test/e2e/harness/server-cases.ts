import { expect, test } from 'vitest'
import { servedBy } from '../../kit/real-harness.ts'
import type { HarnessDriver } from './drivers.ts'
import { dataOf, ended, requestsOf, says, successorOf, type Stage } from './stage.ts'

/** MCP servers of a workspace, and then its limit, with Claude Code. No other run may begin beside it, and none of Claude's after it. */
export function serverCases(stageOf: () => Stage, { limit }: HarnessDriver): void {
  test("the workspace's MCP servers: a rule allows one, strict denies the other, and one without its secret is left out; a limit with a time ends the run, and one that goes on waits for that time", async () => {
    const stage = stageOf()
    const { system } = stage
    const { id: workspaceId } = await system.api.call<{ id: string }>('GET', '/workspaces')
    const agent = await system.api.createAgent({ name: 'Served', harness: 'claude' })
    const value = 'a-value-of-a-secret'
    await system.api.call('POST', '/secrets', { name: 'files', envVarName: 'FILES_TOKEN', value, agentId: agent.id })
    const tools = { allow: ['mcp__files__*'], ask: [], deny: [], defaultMode: 'strict' }
    await system.api.call('PUT', `/agents/${agent.id}/config`, { config: { permissions: { tools } } })
    const server = servedBy('FILES_TOKEN')['files']
    const mcpServers = { files: server, other: server, lost: { url: 'https://${NOT_SET}/mcp' }, 'no name': server }
    await system.api.call('PATCH', `/workspaces/${workspaceId}`, { mcpServers })
    const say = (name: string) => ({ name: `mcp__${name}__say`, input: { text: 'hey' } })
    const resetsAt = Math.ceil(Date.now() / 1000) + 3_600
    const limited = Array.from({ length: 10 }, () => ({ error: limit!.error(resetsAt) }))
    await says(stage, [{ tools: [say('files'), say('other')] }, ...limited])
    const runId = await system.api.startRun(agent.id, 'Say it.')
    await system.api.waitForRun(runId, 'failed')
    await system.api.call('PATCH', `/workspaces/${workspaceId}`, { mcpServers: null })
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
    const manifest = await system.api.call('GET', `/runs/${runId}/manifest`)
    expect(manifest).toMatchObject({
      mcpServers: { given: ['files', 'other', 'lost'], leftOut: [{ name: 'no name', reason: 'name' }] },
    })
    const successor = await successorOf(stage, runId)
    expect(await system.api.run(successor)).toMatchObject({
      parentRunId: runId,
      gateReason: 'rate_limit',
      gateDescription: expect.stringContaining(new Date(resetsAt * 1000).toISOString()),
    })
    expect((await stage.device.status()).limits).toMatchObject([{ resetsAt: resetsAt * 1000 }])
    await system.api.cancel(successor)
  })
}
