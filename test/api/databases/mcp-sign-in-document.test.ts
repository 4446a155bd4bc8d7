import { afterAll, beforeAll, expect, test } from 'vitest'
import { Browser, useLink } from '../../kit/browser.ts'
import { makeLink } from '../../kit/signed-in.ts'
import { McpOauthServer } from '../../kit/mcp-oauth-server.ts'
import { TestServer } from '../../kit/server.ts'
import { serviceSettings } from '../../kit/services.ts'

// A server with a public address is its own metadata document as a client. The address is one of loopback that the operator allows, behind
// a proxy for TLS, for which the provider and the browser go to the server itself.

let site: McpOauthServer
let server: TestServer
let behindTls: TestServer
let publicUrl: string
const unTls = (url: string) => url.replace(publicUrl, behindTls.plane.localUrl)

beforeAll(async () => {
  site = await McpOauthServer.start()
  const services = [{ id: 'notes', label: 'Notes', authKind: 'mcp_oauth', surfaces: ['mcp'], mcp: { url: site.url } }]
  const settings = { SVC_SECRETS_KEY: 'ab'.repeat(32), ...serviceSettings({ services }) }
  server = await TestServer.start({ settings })
  publicUrl = server.url.replace('http:', 'https:')
  behindTls = await TestServer.start({ beside: server, settings: { ...settings, SVC_PUBLIC_URL: publicUrl } })
  site.knows(server.url, {
    features: { clientIdMetadataDocument: { enabled: true, ack: 'draft-02' }, registration: { enabled: true } },
    // Its own dispatcher refuses loopback.
    fetch: (url: string, { method, headers, signal }: RequestInit) =>
      fetch(unTls(url), { method: method!, headers: headers!, signal: signal! }),
  })
})
afterAll(async () => {
  await behindTls.stop()
  await server.stop()
  await site.stop()
})

const begin = (by: TestServer) =>
  by.ok('/connections', { body: { integration: 'notes', ownerType: 'company', accountLabel: crypto.randomUUID() } })

test('the address of the document is the client id', async () => {
  const { nextStep, connection } = await begin(behindTls)
  const clientId = new URL(nextStep.authorizeUrl).searchParams.get('client_id')!
  expect(clientId).toBe(`${publicUrl}/integrations/connections/client.json`)
  const document = await fetch(unTls(clientId))
  expect([document.status, document.headers.get('content-type'), await document.json()]).toEqual([
    200,
    expect.stringContaining('application/json'),
    {
      client_id: clientId,
      client_name: 'svc',
      client_uri: publicUrl,
      redirect_uris: [`${publicUrl}/integrations/connections/callback`],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      application_type: 'web',
    },
  ])
  const back = await site.provider.visit(nextStep.authorizeUrl)
  expect(back).toContain(`${publicUrl}/integrations/connections/callback`)
  const browser = new Browser({ url: behindTls.plane.localUrl })
  await useLink(browser, await makeLink(behindTls, behindTls.owner.email))
  const page = await browser.visit(unTls(back))
  expect([page.status, page.text]).toEqual([200, expect.stringContaining('Connected')])
  expect(await server.ok(`/connections/${connection.id}`)).toMatchObject({ status: 'active' })
  expect(await server.database.root('connection_clients')).toEqual([])
})

test('a server without a public address registers, and has no document', async () => {
  const { nextStep } = await begin(server)
  expect(new URL(nextStep.authorizeUrl).searchParams.get('client_id')).not.toContain('client.json')
  expect((await fetch(`${server.url}/integrations/connections/client.json`)).status).toBe(404)
})
