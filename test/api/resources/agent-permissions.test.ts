import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startWithPeople } from '../../kit/people.ts'
import { outcomeOf, type TestServer, type Person } from '../../kit/server.ts'

// The permission rules of an agent: how they are added, taken away, refused, and named when they do nothing.

let server: TestServer, member: Person
beforeAll(async () => {
  ;({ server, member } = await startWithPeople())
})
afterAll(() => server.stop())

const put = (id: string, body: unknown, token?: string) =>
  server.call(`/agents/${id}/config`, { method: 'PUT', body, ...(token === undefined ? {} : { token }) })
const withTools = (tools: unknown) => ({ config: { permissions: { tools } } })
const toolsOf = async (id: string) => (await server.ok(`/agents/${id}/config`)).config.permissions.tools
const auditOf = async (id: string) => (await server.ok(`/agents/${id}/audit`)).audit
const codesOf = (audit: { code: string }[]) => audit.map(({ code }) => code)

/** As a release that read no rules has stored it. */
async function storeOld(id: string, tools: { allow?: unknown[]; ask?: unknown[]; deny?: unknown[] }) {
  const row = { allow: [], ask: [], deny: [], ...tools }
  await server.database
    .root('agents')
    .where({ id })
    .update({ tools: JSON.stringify(row) })
}

describe('rules', () => {
  test('are added to those that are there, and taken away one by one', async () => {
    const agent = await server.createAgent()
    await put(agent.id, { addRules: { deny: ['Bash(rm:*)'], allow: ['Read'] } })
    const second = await put(agent.id, { addRules: { deny: ['Bash(mv:*)', 'Bash(rm:*)'] } })
    expect(second.body.config.permissions.tools).toMatchObject({ allow: ['Read'], deny: ['Bash(rm:*)', 'Bash(mv:*)'] })
    expect(second.body.revision.changedKeys).toEqual(['permissions.tools.deny'])
    const third = await put(agent.id, { removeRules: { deny: ['Bash(rm:*)'] }, addRules: { ask: ['Write'] } })
    expect(third.body.config.permissions.tools).toMatchObject({ allow: ['Read'], ask: ['Write'], deny: ['Bash(mv:*)'] })
    expect((await put(agent.id, { addRules: { ask: ['Write'] } })).body.revision).toBeNull()
    await put(agent.id, { addRules: { deny: null } })
    expect(await toolsOf(agent.id)).toMatchObject({ allow: ['Read'], ask: ['Write'], deny: [] })
  })

  test('that two people add at once are both there', async () => {
    const agent = await server.createAgent()
    const add = (rule: string) => put(agent.id, { addRules: { deny: [rule] } })
    const rules = Array.from({ length: 6 }, (_, at) => `Bash(tool${at}:*)`)
    const replies = await Promise.all(rules.map(add))
    expect(replies.map(({ status }) => status)).toEqual(rules.map(() => 200))
    expect((await toolsOf(agent.id)).deny.toSorted()).toEqual(rules)
  })

  test('that are not there cannot be taken away, and nothing else of the change is made', async () => {
    const agent = await server.createAgent()
    await put(agent.id, { addRules: { allow: ['Read'] } })
    const reply = await put(agent.id, { removeRules: { allow: ['Reed'] }, addRules: { deny: ['Bash'] } })
    expect(outcomeOf(reply)).toBe('400 validation_error')
    expect(reply.body.error).toMatchObject({ param: 'removeRules.allow', message: expect.stringContaining('`Read`') })
    expect(await toolsOf(agent.id)).toMatchObject({ allow: ['Read'], deny: [] })
  })

  test('are changed by admins only, in whichever way', async () => {
    const agent = await server.createAgent({}, member.token)
    await put(agent.id, { addRules: { deny: ['Bash'] } })
    for (const body of [
      { addRules: { allow: ['Bash'] } },
      { removeRules: { deny: ['Bash'] } },
      { addRules: { deny: null } },
    ])
      expect(outcomeOf(await put(agent.id, body, member.token))).toBe('403 http_exception')
    expect(await toolsOf(agent.id)).toMatchObject({ allow: [], deny: ['Bash'] })
  })

  test('of a full list find no room', async () => {
    const agent = await server.createAgent()
    await put(agent.id, withTools({ deny: Array.from({ length: 500 }, (_, at) => `Bash(tool${at})`) }))
    expect(outcomeOf(await put(agent.id, { addRules: { deny: ['Write'] } }))).toBe('400 validation_error')
    expect((await toolsOf(agent.id)).deny).toHaveLength(500)
  })
})

describe('a rule that cannot be read', () => {
  test.for([
    'Bash(rm:*',
    '(rm:*)',
    'Bash[rm]',
    '"Bash(rm:*)"',
    'Bash(rm:*), Bash(mv:*)',
    'Bash rm',
    'WebFetch(domain:)',
  ])('%s is refused with what is wrong with it, in each list', async (rule) => {
    const agent = await server.createAgent()
    for (const list of ['allow', 'ask', 'deny']) {
      for (const body of [withTools({ [list]: [rule] }), { addRules: { [list]: ['Read', rule] } }]) {
        const reply = await put(agent.id, body)
        expect(outcomeOf(reply)).toBe('400 validation_error')
        expect(reply.body.error.param).toBe(`config.permissions.tools.${list}`)
        expect(reply.body.error.message).toContain(`\`${rule}\` cannot be read`)
      }
    }
    expect(await toolsOf(agent.id)).toMatchObject({ allow: [], ask: [], deny: [] })
  })

  test('is refused before a person is asked to approve it', async () => {
    const { agent, token } = await server.agentCaller()
    expect(outcomeOf(await put('me', { addRules: { deny: ['Bash(rm:*'] } }, token))).toBe('400 validation_error')
    expect((await put('me', { addRules: { deny: ['Bash(rm:*)'] } }, token)).status).toBe(202)
    expect(await toolsOf(agent.id)).toMatchObject({ deny: [] })
  })

  test('from an earlier release is named by the doctor, keeps nobody from other changes, and does not come back', async () => {
    const agent = await server.createAgent({ harness: 'claude' })
    await storeOld(agent.id, { deny: ['Bash(rm:*'], allow: ['Bash(ls'] })
    const audit = await auditOf(agent.id)
    expect(audit.filter(({ code }: { code: string }) => code === 'rule_unreadable')).toEqual([
      {
        code: 'rule_unreadable',
        severity: 'error',
        param: 'permissions.tools.deny',
        message: expect.stringMatching(/Bash\(rm:\* of its deny list cannot be read, so it denies every call/),
      },
      { code: 'rule_unreadable', severity: 'error', param: 'permissions.tools.allow', message: expect.anything() },
    ])
    expect((await put(agent.id, { config: { runtime: { maxTurns: 7 } } })).status).toBe(200)
    const mended = await put(agent.id, {
      removeRules: { deny: ['Bash(rm:*'], allow: ['Bash(ls'] },
      addRules: { deny: ['Bash(rm:*)'] },
    })
    expect(codesOf(mended.body.audit)).not.toContain('rule_unreadable')
    const [, before] = (await server.ok(`/agents/${agent.id}/revisions`)).data
    const back = await server.call(`/agents/${agent.id}/revisions/${before.id}/rollback`, { body: {} })
    expect(outcomeOf(back)).toBe('400 validation_error')
    expect(await toolsOf(agent.id)).toMatchObject({ allow: [], deny: ['Bash(rm:*)'] })
  })
})

describe('a rule that names no tool of the harness', () => {
  const named = (audit: { code: string; message: string }[]) =>
    audit.filter(({ code }) => code === 'rule_names_no_tool').map(({ message }) => message)

  test('is a warning on the write and in the doctor, and is no reason to think that something is denied', async () => {
    const agent = await server.createAgent({ harness: 'claude' })
    const reply = await put(agent.id, { addRules: { deny: ['Bsh(rm:*)', 'none'] } })
    expect(reply.status).toBe(200)
    expect(named(reply.body.audit)[0]).toMatch(/Bsh\(rm:\*\) of its deny list names Bsh.*Is Bash meant\?/)
    expect(named(reply.body.audit)).toHaveLength(2)
    const audit = await auditOf(agent.id)
    expect(audit).toEqual(reply.body.audit)
    expect(codesOf(audit)).toContain('permissions_allow_everything')
    const mended = await put(agent.id, {
      removeRules: { deny: ['Bsh(rm:*)', 'none'] },
      addRules: { deny: ['Bash(rm:*)'] },
    })
    expect(codesOf(mended.body.audit)).not.toContain('rule_names_no_tool')
    expect(codesOf(mended.body.audit)).not.toContain('permissions_allow_everything')
  })

  test('is judged by the tools of the harness that runs, and of the one that it falls back on', async () => {
    const agent = await server.createAgent({ harness: 'codex' })
    const added = await put(agent.id, { addRules: { deny: ['Read', 'mcp__files__read', 'Ed*'] } })
    expect(named(added.body.audit)).toEqual([
      expect.stringContaining('names Read, and svc knows no such tool of Codex'),
    ])
    const other = await put(agent.id, { config: { runtime: { fallbackHarness: 'claude' } } })
    expect(named(other.body.audit)).toEqual([])
  })
})
