import { execFile, type ChildProcess } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, inject, test } from 'vitest'
import { signedIn } from '../../kit/signed-in.ts'
import { hasPostgres } from '../../kit/database.ts'
import { OauthProvider } from '../../kit/provider.ts'
import { TestServer } from '../../kit/server.ts'
import { serviceSettings } from '../../kit/services.ts'

// Processes that are killed by `kill -9` while they renew a token, and what the next one finds.

const key = 'ab'.repeat(32)
const program = join(import.meta.dirname, '../../kit/renew-once.ts')
const databases = ['sqlite', ...(hasPostgres() ? (['postgres'] as const) : [])] as const
const minuteMs = 61_000
/** A claim ends by itself after half a minute. */
const afterClaimMs = minuteMs + 31_000

describe.each(databases)('on %s', (kind) => {
  let stop: () => Promise<void> = () => Promise.resolve()
  afterEach(() => stop())

  async function signIn() {
    const provider = await OauthProvider.start()
    const settings = { SVC_SECRETS_KEY: key, ...serviceSettings({ services: [provider.entry()] }) }
    const path = join(mkdtempSync(join(inject('databases').folder, 'renewal-')), 'svc.db')
    const server = await TestServer.start({ settings, ...(kind === 'sqlite' ? { file: path } : { database: kind }) })
    stop = async () => {
      await server.stop()
      await provider.stop()
    }
    provider.serve(server.url)
    const body = { integrationId: 'provider', ownerType: 'company' }
    const { nextStep, connection } = await server.ok('/connections', { body })
    const page = await (await signedIn(server)).visit(await provider.visit(nextStep.authorizeUrl))
    expect(page.status).toBe(200)
    provider.asked.length = 0
    const told = {
      url: server.database.url ?? path,
      key,
      file: settings.SVC_SERVICES_FILE,
      workspaceId: server.owner.workspaceId,
      connectionId: connection.id as string,
    }
    /** Another replica whose clock is so far ahead; says what it got, or nothing when it was killed. */
    const use = (aheadMs: number): { child: ChildProcess; said: Promise<string> } => {
      let child!: ChildProcess
      const said = new Promise<string>((resolve) => {
        child = execFile(process.execPath, [program, JSON.stringify({ ...told, aheadMs })], (_, stdout) =>
          resolve(stdout),
        )
      })
      return { child, said }
    }
    const shown = () => server.ok(`/connections/${told.connectionId}`)
    return { provider, use, shown }
  }

  test('killed before the provider reads the request: the next one renews', async () => {
    const { provider, use, shown } = await signIn()
    const killed = use(minuteMs)
    provider.onToken = async () => {
      provider.onToken = () => undefined
      killed.child.kill('SIGKILL')
      await killed.said
      return 'drop' as const
    }
    expect(await killed.said).toBe('')
    expect(await use(afterClaimMs).said).toBe('2')
    expect(provider.asked).toEqual(['refresh_token good'])
    expect(await shown()).toMatchObject({ status: 'active' })
  })

  test('killed while the answer is on its way: it is expired, and says so', async () => {
    const { provider, use, shown } = await signIn()
    const killed = use(minuteMs)
    provider.onToken = async (moment) => {
      if (moment === 'asked') return
      provider.onToken = () => undefined
      killed.child.kill('SIGKILL')
      await killed.said
    }
    expect(await killed.said).toBe('')
    expect(await use(afterClaimMs).said).toBe('not_active')
    expect(await shown()).toMatchObject({
      status: 'expired',
      statusReason: expect.stringContaining('The server was stopped while it renewed the token'),
    })
  })

  test('killed once the answer has come: the next one has what was stored, or it is expired, and says so', async () => {
    const { provider, use, shown } = await signIn()
    const killed = use(minuteMs)
    provider.onToken = (moment) => {
      if (moment === 'done') setImmediate(() => killed.child.kill('SIGKILL'))
    }
    await killed.said
    provider.onToken = () => undefined
    const next = await use(afterClaimMs).said
    const { status, statusReason } = await shown()
    const stored = next !== 'not_active'
    expect([status, statusReason]).toEqual(
      stored ? ['active', null] : ['expired', expect.stringContaining('was stopped')],
    )
  })
})
