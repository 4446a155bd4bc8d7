import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { useRealServer } from './real-server.ts'
import { makeServedHome, type ServedHome } from './served-home.ts'

// Files, automations and devices are taken by their names, too.

describe('on a server', () => {
  const real = useRealServer()
  const upload = async (name: string, text: string) => {
    writeFileSync(join(real.folder, 'text'), text)
    const end = await real.svc(['file', 'upload', 'text', '--name', name])
    expect(end.status, end.stderr).toBe(0)
    return (JSON.parse(end.stdout) as { id: string }).id
  }

  test('a file is read, and its history, by its name; with two of the same name both are told', async () => {
    const first = await upload('notes.md', 'one')
    await upload('more notes.md.bak', 'other')
    expect(await real.svc(['file', 'read', 'notes.md'])).toMatchObject({ status: 0, stdout: 'one\n' })
    const history = await real.svc(['file', 'history', 'notes.md'])
    expect(JSON.parse(history.stdout)).toMatchObject({ data: [{ fileId: first }] })

    const second = await upload('notes.md', 'two')
    const told = await real.svc(['file', 'delete', 'notes.md', '-o', 'table'])
    expect(told).toMatchObject({ status: 1, stdout: '' })
    expect(told.stderr).toContain('<file>: Several files are called `notes.md`.\nGive the id:\n')
    for (const id of [first, second]) expect(told.stderr).toContain(`  ${id}  `)
    expect(await real.svc(['file', 'read', second])).toMatchObject({ status: 0, stdout: 'two\n' })
  })

  test('a deleted file is restored by its name', async () => {
    const id = await upload('gone.md', 'x')
    // What is deleted alone cannot be restored.
    expect((await real.svc(['file', 'bulk-delete', id])).status).toBe(0)
    expect((await real.svc(['file', 'get', 'gone.md'])).status).toBe(1)
    const restored = await real.svc(['file', 'restore', 'gone.md'])
    expect(JSON.parse(restored.stdout)).toMatchObject({ id })
  })

  test('an automation is taken by its name, and a near one is named', async () => {
    expect((await real.svc(['agent', 'create', '--name', 'Builder'])).status).toBe(0)
    const made = await real.svc([
      'automation',
      'create',
      '--name',
      'Nightly 100%',
      '--cron',
      '0 3 * * *',
      '--agent',
      'Builder',
      '--prompt',
      'x',
    ])
    expect(made.status, made.stderr).toBe(0)
    const { id } = JSON.parse(made.stdout) as { id: string }
    expect(JSON.parse((await real.svc(['automation', 'pause', 'Nightly 100%'])).stdout)).toMatchObject({
      id,
      status: 'paused',
    })
    const mistyped = await real.svc(['automation', 'get', 'Nihgtly 100%', '-o', 'table'])
    expect(mistyped.status).toBe(1)
    expect(mistyped.stderr).toContain('Did you mean `Nightly 100%`?')
  })
})

describe('of what a server tells', () => {
  const id = 'file_6kR2wB9xTnV4pL7c'
  let home: ServedHome
  beforeEach(() => {
    home = makeServedHome()
  })
  afterEach(() => home.close())
  const rows = (names: readonly string[], hasMore = false) => ({
    body: {
      object: 'list',
      data: names.map((name, at) => ({ id: id.slice(0, -1) + String(at), name, contentType: 'text/plain\u001b[2J' })),
      hasMore,
    },
  })

  test('an id, also as a name of something else, costs no request, and a name one', async () => {
    const env = await home.inRun(({ path }) =>
      path === '/api/v1/files' ? rows([id, 'a.md'].slice(1)) : { body: { id } },
    )
    await home.svc(['file', 'get', id], { env })
    expect(home.api.received.map(({ path }) => path)).toEqual([`/api/v1/files/${id}`])
    await home.svc(['file', 'get', '--', '--a.md'], { env })
    await home.svc(['file', 'get', 'a.md'], { env })
    expect(home.api.received.slice(-2).map(({ path }) => path)).toEqual([
      '/api/v1/files',
      '/api/v1/files/file_6kR2wB9xTnV4pL70',
    ])
  })

  test('one match on a full page proves nothing, so nothing is deleted', async () => {
    const env = await home.inRun(() => rows(['a', ...Array.from({ length: 99 }, (_, at) => `a${at}`)], true))
    const end = await home.svc(['file', 'delete', 'a', '-o', 'table'], { env })
    expect(end.status).toBe(1)
    expect(end.stderr).toContain('More than 100 files have `a` in their names')
    expect(home.api.received.map(({ method, query }) => [method, query.get('q'), query.get('limit')])).toEqual([
      ['GET', 'a', '100'],
    ])
  })

  test('names and types with escape sequences draw nothing', async () => {
    const env = await home.inRun(() => rows(['\u001b[2Jx', '\u001b[2Jx']))
    const end = await home.svc(['file', 'get', '\u001b[2Jx', '-o', 'table'], { env })
    expect(end.status).toBe(1)
    expect(end.stderr).not.toContain('\u001b')
  })

  test('a device is taken by its name or its durable id', async () => {
    const deviceId = '5b0c7d0e-6a7e-4b52-9a8e-2f9d1c3e4a6b'
    const env = await home.inRun(({ method }) =>
      method === 'GET'
        ? { body: { devices: [{ deviceId, publicId: 'dvc_5dF9gJ3kZxC7vB1n', displayName: 'my laptop' }] } }
        : { status: 204 },
    )
    for (const name of ['my laptop', 'dvc_5dF9gJ3kZxC7vB1n', deviceId.toUpperCase()])
      expect((await home.svc(['device', 'remove', name], { env })).status, name).toBe(0)
    const removed = home.api.received.filter(({ method }) => method === 'DELETE').map(({ path }) => path.toLowerCase())
    expect(removed).toEqual(Array.from({ length: 3 }, () => `/api/v1/devices/${deviceId}`))
    expect(home.api.received).toHaveLength(5)
  })
})
