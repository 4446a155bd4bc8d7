import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { signedIn } from '../kit/signed-in.ts'
import { McpOauthServer } from '../kit/mcp-oauth-server.ts'
import { useRealServer } from './real-server.ts'

// `svc mcp sign-in` and `svc mcp tools`, as docs/connections.md has them.

const real = useRealServer({ SVC_ALLOW_HOSTS: '127.0.0.1' })
let site: McpOauthServer
beforeAll(async () => {
  site = await McpOauthServer.start()
})
afterAll(() => site.stop())

test('the commands of the page sign in to a server, and list its tools', async () => {
  site.knows(real.server.url)
  const made = await real.svc(['mcp', 'create', '--name', 'notes', '--url', site.url])
  const { id } = JSON.parse(made.stdout)
  const page = readFileSync(join(import.meta.dirname, '../../docs/connections.md'), 'utf8').split('\n')
  const [signIn, tools] = ['svc mcp sign-in ', 'svc mcp tools '].map((begin) => {
    const line = page.find((each) => each.startsWith(begin))!
    return line.split(' ').slice(1, -1).concat(id)
  })
  const before = await real.svc(tools!)
  expect([before.status, before.stderr]).toEqual([1, expect.stringContaining(`svc mcp sign-in ${id}`)])
  const asked = JSON.parse((await real.svc(signIn!)).stdout)
  expect(asked).toMatchObject({ status: 'human_required', nextStep: { fields: [{ name: 'clientId' }, {}, {}] } })
  const client = JSON.stringify({ clientId: 'svc', clientSecret: 'client-secret-of-svc' })
  const begun = await real.svc([...signIn!, '--api-key-fields', '@-'], { input: client })
  const back = await site.provider.visit(JSON.parse(begun.stdout).nextStep.authorizeUrl)
  expect((await (await signedIn(real.server)).visit(back)).status).toBe(200)
  expect(JSON.parse((await real.svc(tools!)).stdout).data).toMatchObject([{ name: 'say' }])
  const unknown = await real.svc(['mcp', 'sign-in', 'mcp_0000000000000000'])
  expect([unknown.status, unknown.stderr]).toEqual([1, expect.stringContaining('integration_not_found')])
})
