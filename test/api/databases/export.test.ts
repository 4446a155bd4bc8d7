import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { request, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { hasPostgres } from '../../kit/database.ts'
import { outcomeOf, TestServer } from '../../kit/server.ts'
import { at } from '../../store/seed.ts'

// A large export: it is of one moment, nobody waits for it, and who reads it slowly holds little.

const tasks = 1_500
const description = 'Long ago '.repeat(1_000)

for (const database of ['sqlite', 'postgres'] as const)
  describe.skipIf(database === 'postgres' && !hasPostgres())(`on ${database}`, () => {
    let server: TestServer
    let beside: TestServer | null = null
    beforeAll(async () => {
      const file = join(mkdtempSync(join(inject('databases').folder, 'export-')), 'svc.db')
      server = await TestServer.start(database === 'sqlite' ? { file } : { database })
      if (database === 'postgres') beside = await TestServer.start({ beside: server })
      for (let from = 0; from < tasks; from += 100)
        await server.database.root('tasks').insert(Array.from({ length: 100 }, (_, n) => taskRow(from + n)))
    })
    afterAll(async () => {
      await beside?.stop()
      await server.stop()
    })

    const taskRow = (n: number) => ({
      id: `tsk_${String(n).padStart(16, '0')}`,
      workspace_id: server.owner.workspaceId,
      key: `OLD-${n}`,
      title: `Task ${n}`,
      title_words: 'task',
      description,
      status: 'open',
      priority: 'normal',
      parent_task_id: n % 2 === 1 ? `tsk_${String(n - 1).padStart(16, '0')}` : null,
      created_by_type: 'system',
      created_at: at + n,
      updated_at: at + n,
    })
    const path = () => `/workspaces/${server.owner.workspaceId}/export`
    const keyed = () => ({ 'idempotency-key': crypto.randomUUID() })

    /** Begins an export of which nothing is read yet. */
    async function begun(of = server) {
      const url = `${of.plane.localUrl}/api/v1${path()}`
      const asked = request(url, {
        method: 'POST',
        headers: { authorization: `Bearer ${server.owner.token}`, ...keyed() },
        agent: false,
      })
      asked.on('error', () => undefined)
      asked.end()
      const [response] = (await once(asked, 'response')) as [IncomingMessage]
      return { response, leave: () => asked.destroy() }
    }
    async function read(response: IncomingMessage): Promise<string> {
      const chunks: Buffer[] = []
      for await (const chunk of response) chunks.push(chunk as Buffer)
      return (JSON.parse(Buffer.concat(chunks).toString()) as { manifest: string }).manifest
    }

    test('has what was there when it began, and lets others write meanwhile', async () => {
      const { response } = await begun()
      expect([response.statusCode, response.headers['content-length']]).toEqual([200, undefined])
      const began = performance.now()
      const made: string[] = []
      for (let n = 0; n < 5; n++)
        made.push((await server.ok('/tasks', { body: { title: `Later ${n}` }, headers: keyed() })).id)
      const changed = `/tasks/${taskRow(tasks - 1).id}/transition`
      await server.ok(changed, { body: { status: 'cancelled' }, headers: keyed() })
      expect(performance.now() - began).toBeLessThan(15_000)
      const manifest = await read(response)
      expect(manifest).toContain(`\n## Tasks (${tasks})\n`)
      expect([...manifest.matchAll(/^### `OLD-(\d+)` `Task \d+`$/gm)].map((found) => Number(found[1]))).toEqual(
        Array.from({ length: tasks }, (_, n) => n),
      )
      expect(manifest).not.toContain('Later')
      expect(manifest).not.toContain('- Status: `cancelled`')
      expect(manifest).toContain('- Parent: `OLD-0`')
      for (const id of made) expect(manifest).not.toContain(id)
      const again = await read((await begun()).response)
      expect(again).toContain(`\n## Tasks (${tasks + 5})\n`)
      expect(again).toContain('- Status: `cancelled`')
    })

    test('one of a workspace at once, on whichever replica; who goes away makes room', async () => {
      const first = await begun()
      expect(first.response.statusCode).toBe(200)
      for (const other of beside === null ? [server] : [server, beside]) {
        const { response } = await begun(other)
        expect([response.statusCode, response.headers['retry-after']]).toEqual([429, '15'])
        response.resume()
      }
      first.leave()
      const next = async () => {
        const { response, leave } = await begun()
        leave()
        return response.statusCode
      }
      await expect.poll(next).toBe(200)
    })

    test('is for admins of the workspace', async () => {
      const member = await server.addPerson('member')
      expect(outcomeOf(await server.call(path(), { method: 'POST', token: member.token }))).toBe('403 http_exception')
      const elsewhere = await server.addPerson('owner', 'elsewhere')
      expect(outcomeOf(await server.call(path(), { method: 'POST', token: elsewhere.token }))).toBe('403 not_permitted')
    })
  })
