import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startWithPeople } from '../../kit/people.ts'
import { outcomeOf, type Person, type TestServer } from '../../kit/server.ts'
import { makeShare, makeSkill, skillMd } from '../facts/kit/skills.ts'
import { agentCalls } from './agent-calls-kit.ts'

let server: TestServer, member: Person, stranger: Person
beforeAll(async () => {
  ;({ server, member } = await startWithPeople())
  stranger = await server.addPerson('owner', 'elsewhere')
})
afterAll(() => server.stop())

const { agentCaller } = agentCalls(() => ({ server, member }))
const preview = (token: string) => server.call(`/skills/shared/${token}`, { token: null })
const install = (shareToken: string, { token, workspaceId }: { token: string; workspaceId: string }) =>
  server.call(`/skills/shared/${shareToken}/install`, { body: { targetCompanyId: workspaceId }, token })

describe('a share link', () => {
  test('shows the skill to everybody who has it, and its token once', async () => {
    const skill = await makeSkill({ server })
    const made = await server.call(`/skills/${skill.id}/share`, { body: {}, token: member.token })
    expect([made.status, made.body]).toEqual([
      201,
      {
        object: 'skill_share',
        id: expect.stringMatching(/^shr_\w{16}$/),
        token: expect.stringMatching(/^svc_shr_\w{43}$/),
        url: expect.stringMatching(new RegExp(`/api/v1/skills/shared/${made.body.token}$`)),
        expiresAt: null,
        revokedAt: null,
        createdAt: expect.any(String),
      },
    ])
    const shown = await preview(made.body.token)
    expect(shown.body).toEqual({
      object: 'shared_skill',
      name: skill.name,
      slug: skill.slug,
      description: skill.description,
      version: 1,
      fileCount: 1,
      totalBytes: skill.totalBytes,
      bundleHash: skill.bundleHash,
      files: skill.files,
      expiresAt: null,
    })
    const { data } = await server.ok(`/skills/${skill.id}/shares`)
    const { token: _, url: __, ...row } = made.body
    expect(data).toEqual([row])
    expect((await server.ok(`/skills/${skill.id}`)).share).toEqual({ isShareable: true, latestShareId: row.id })
    const rows: unknown[] = await server.database.root('skill_shares')
    expect(JSON.stringify(rows)).not.toContain(made.body.token)
  })

  test('is gone when it is revoked, when it expires, and when its skill is deleted', async () => {
    const revoked = await makeShare({ server })
    const path = `/skills/${revoked.skillId}/shares/${revoked.shareId}`
    for (let times = 0; times < 2; times++) expect((await server.call(path, { method: 'DELETE' })).status).toBe(204)
    const deleted = await makeShare({ server })
    await server.ok(`/skills/${deleted.skillId}`, { method: 'DELETE' })
    const expired = await makeShare({ server }, { expiresAt: '2099-01-01T00:00:00Z' })
    expect((await preview(expired.shareToken)).body.expiresAt).toBe('2099-01-01T00:00:00.000Z')
    await server.database.root('skill_shares').where({ id: expired.shareId }).update({ expires_at: 1 })
    for (const { shareToken } of [revoked, deleted, expired]) {
      expect(outcomeOf(await preview(shareToken))).toBe('410 share_gone')
      expect(outcomeOf(await install(shareToken, stranger))).toBe('410 share_gone')
    }
    const past = await server.call(`/skills/${revoked.skillId}/share`, { body: { expiresAt: '2020-01-01' } })
    expect(outcomeOf(past)).toBe('400 validation_error')
  })

  test('is copied into another workspace, where a taken slug gets a number', async () => {
    const { skillId, shareToken } = await makeShare({ server })
    const source = await server.ok(`/skills/${skillId}`)
    const [first, second] = [await install(shareToken, stranger), await install(shareToken, stranger)]
    expect([first.status, first.body]).toMatchObject([
      201,
      { slug: source.slug, sourceType: 'shared', version: 1, bundleHash: source.bundleHash },
    ])
    expect(second.body.slug).toBe(`${source.slug}-2`)
    await server.ok(`/skills/${skillId}`, { method: 'DELETE' })
    const read = await server.ok(`/skills/${first.body.id}/files/content?path=SKILL.md`, { token: stranger.token })
    expect(read.content).toBe(skillMd())
    const long = await makeShare({ server })
    await server.database
      .root('skills')
      .where({ id: long.skillId })
      .update({ slug: 'x'.repeat(64) })
    await install(long.shareToken, stranger)
    expect((await install(long.shareToken, stranger)).body.slug).toBe(`${'x'.repeat(62)}-2`)
  })

  test('is copied for an agent once a person approves, whatever becomes of the link until then', async () => {
    const { skillId, shareId, shareToken } = await makeShare({ server })
    const { agent, token } = await agentCaller()
    const asked = await install(shareToken, { token, workspaceId: member.workspaceId })
    expect(asked.status).toBe(202)
    const approval = await server.ok(`/approvals/${asked.body.approvalId}`, { token: member.token })
    expect(JSON.stringify(approval)).not.toContain(shareToken)
    await server.ok(`/skills/${skillId}/replace-bundle`, {
      body: { bundle: { files: [{ path: 'SKILL.md', content: 'Other' }] } },
    })
    await server.ok(`/skills/${skillId}/shares/${shareId}`, { method: 'DELETE' })
    const headers = { 'idempotency-key': crypto.randomUUID() }
    await server.ok(`/approvals/${asked.body.approvalId}/approve`, { body: {}, token: member.token, headers })
    const [copy] = (await server.ok('/skills?sourceType=shared')).data
    expect(copy).toMatchObject({ enabledByDefault: false, version: 1 })
    expect((await server.ok(`/skills/${copy.id}/files/content?path=SKILL.md`)).content).toBe(skillMd())
    const rows = (await server.ok(`/skills/agents/${agent.id}`, { token: member.token })).data
    expect(rows.find((row: { skillId: string }) => row.skillId === copy.id)).toMatchObject({ effectiveEnabled: true })
  })

  test('is seen 60 times a minute from one address', async () => {
    const { shareToken } = await makeShare({ server })
    const statuses = new Set<number>()
    for (let times = 0; times < 61; times++) statuses.add((await preview(shareToken)).status)
    expect([...statuses]).toEqual([200, 429])
  })
})
