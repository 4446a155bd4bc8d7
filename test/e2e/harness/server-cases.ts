import { expect, test } from 'vitest'
import { wholeLog } from '../../kit/invariants.ts'
import { servedBy } from '../../kit/real-harness.ts'
import { dataOf, type Stage } from './stage.ts'

/** MCP servers of a workspace, with Claude Code. */
export function serverCases(stageOf: () => Stage): void {
  test("the workspace's MCP servers: a rule allows one, strict denies the other, and one without its secret is left out", async () => {
    const { system, stub } = stageOf()
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
    await stub.script({ claude: { steps: [{ tools: [say('files'), say('other')] }, { text: 'Done.' }] } })
    const runId = await system.api.startRun(agent.id, 'Say it.')
    await system.api.waitForRun(runId, 'succeeded')
    await system.api.call('PATCH', `/workspaces/${workspaceId}`, { mcpServers: null })
    const events = await system.api.events(runId)
    wholeLog(events, 'completed')
    expect(dataOf(events, 'error')).toEqual([
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
    expect(JSON.stringify((await stub.requests()).at(-1)?.body)).toContain(`said hey with ${value} else`)
    expect(JSON.stringify(events)).not.toContain(value)
    const manifest = await system.api.call('GET', `/runs/${runId}/manifest`)
    expect(manifest).toMatchObject({
      mcpServers: { given: ['files', 'other', 'lost'], leftOut: [{ name: 'no name', reason: 'name' }] },
    })
  })
}
